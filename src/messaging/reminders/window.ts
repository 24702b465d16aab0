import { z } from "zod";
import type { TouchChannel } from "../touch/service.ts";

export const REMINDER_CHANNELS = ["email", "sms", "push"] as const satisfies readonly TouchChannel[];

export const DAY = 86_400;
export const EVERY_DAY = 127;
/** The names of days in the order of their bits. */
export const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;

/** When somebody wants to hear from us: a time of day that each channel has its own hours for, or hours of their own. */
export const TimeRange = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("preset"), preset: z.enum(["unspecified", "morning", "afternoon", "evening"]) }),
  z
    .strictObject({
      type: z.literal("explicit"),
      start: z
        .int()
        .min(0)
        .max(DAY - 1),
      end: z
        .int()
        .min(0)
        .max(2 * DAY - 1),
    })
    .refine(({ start, end }) => start <= end, { message: "ends before it begins", path: ["end"] }),
]);
export type TimeRange = z.output<typeof TimeRange>;

/** One person's choice on one channel. */
export interface Choice {
  /** 1 is Sunday, 64 is Saturday; 0 is never. */
  readonly mask: number;
  readonly range: TimeRange;
}

/** Seconds after local midnight, both included; the end may be on the next day. */
export interface Window {
  readonly mask: number;
  readonly start: number;
  readonly end: number;
}

type Preset = "morning" | "afternoon" | "evening";

const HOURS: Readonly<Record<TouchChannel, Readonly<Record<Preset, readonly [number, number]>>>> = {
  email: { morning: [21_600, 39_600], afternoon: [46_800, 57_600], evening: [61_200, 68_400] },
  sms: { morning: [28_800, 39_600], afternoon: [46_800, 57_600], evening: [57_600, 61_200] },
  push: { morning: [21_600, 39_600], afternoon: [46_800, 57_600], evening: [61_200, 68_400] },
};

/** Whose choice a channel without one of its own follows first. */
const LIKENESS: Readonly<Record<TouchChannel, readonly TouchChannel[]>> = {
  email: ["sms", "push"],
  sms: ["email", "push"],
  push: ["email", "sms"],
};

export type Choices = Readonly<Partial<Record<TouchChannel, Choice>>>;

const daysIn = (mask: number) => mask.toString(2).replaceAll("0", "").length;
const isExplicit = ({ range }: Choice) => range.type === "explicit";

function hours(channel: TouchChannel, preset: Preset): { readonly start: number; readonly end: number } {
  const [start, end] = HOURS[channel][preset];
  return { start, end };
}

/**
 * When reminders come on a channel. A choice of its own decides; what it leaves open, or all of it where there is none, is
 * taken from the other channels: explicit hours before times of day, fewer days before more, then the channel most alike.
 */
export function windowOf(channel: TouchChannel, choices: Choices): Window {
  const own = choices[channel];
  if (own?.mask === 0) return { mask: 0, ...hours(channel, "morning") };
  if (own?.range.type === "explicit") return { mask: own.mask, start: own.range.start, end: own.range.end };
  if (own && own.range.preset !== "unspecified") return { mask: own.mask, ...hours(channel, own.range.preset) };
  const inferred = inferredWindow(channel, choices);
  return own ? { ...inferred, mask: own.mask } : inferred;
}

function inferredWindow(channel: TouchChannel, choices: Choices): Window {
  const others = LIKENESS[channel].flatMap((other) => {
    const choice = choices[other];
    return choice && choice.mask !== 0 ? [choice] : [];
  });
  // Sorting is stable, so the channel most alike stays first among equals.
  const [best] = [...others].sort(
    (one, other) => Number(isExplicit(other)) - Number(isExplicit(one)) || daysIn(one.mask) - daysIn(other.mask),
  );
  if (!best) return { mask: EVERY_DAY, ...hours(channel, "morning") };
  if (best.range.type === "explicit") return { mask: best.mask, start: best.range.start, end: best.range.end };
  const preset = best.range.preset === "unspecified" ? "morning" : best.range.preset;
  return { mask: best.mask, ...hours(channel, preset) };
}

/** The bit of a local calendar day. */
export function weekdayBit(unixDate: number): number {
  return 1 << ((((unixDate + 4) % 7) + 7) % 7);
}

export function daysOf(mask: number): readonly (typeof WEEKDAYS)[number][] {
  return WEEKDAYS.filter((_, at) => (mask & (1 << at)) !== 0);
}

export function maskOf(days: readonly (typeof WEEKDAYS)[number][]): number {
  return days.reduce((mask, day) => mask | (1 << WEEKDAYS.indexOf(day)), 0);
}
