import { z } from "zod";

/** What may go wrong with a request to Expo, and with a message that it takes. */
export const EXPO_REQUEST_FAULTS = [
  "400",
  "429",
  "500",
  "503",
  "reset",
  "silence",
  "cut_after_accept",
  "malformed_json",
  "malformed_structure",
  "malformed_count",
] as const;
export const EXPO_MESSAGE_FAULTS = ["ticket_error", "receipt_error", "receipt_never"] as const;

/** What may go wrong with a request to Twilio, with a text that it takes, and with a callback about it. */
export const TWILIO_REQUEST_FAULTS = [
  "400",
  "429",
  "500",
  "503",
  "reset",
  "silence",
  "cut_after_create",
  "malformed_json",
  "malformed_structure",
] as const;
export const TWILIO_MESSAGE_FAULTS = ["failed", "undelivered", "canceled", "stuck"] as const;
export const TWILIO_CALLBACK_FAULTS = ["off", "delay", "duplicate", "reorder", "badSignature", "blankField"] as const;

/** What may become of a mail that was taken, and of a report about it. Errors of sending have a list of their own. */
export const SES_MAIL_FAULTS = ["bounce", "ooto", "complaint", "silent"] as const;
export const SES_NOTICE_FAULTS = [
  "dropped",
  "duplicated",
  "reordered",
  "bad_signature",
  "wrong_topic",
  "foreign_cert_url",
  "oversized_body",
  "unknown_type",
] as const;

export const Rate = z.number().min(0).max(1);

/** A share for each of several kinds at once. */
export const ratesOf = <const Kinds extends readonly [string, ...string[]]>(kinds: Kinds) =>
  z.partialRecord(z.enum(kinds), Rate).refine((rates) => sumOf(rates) <= 1 + 1e-9, {
    message: "the shares add up to more than 1",
  });

function sumOf(rates: Readonly<Record<string, unknown>>): number {
  return Object.values(rates).reduce<number>((sum, rate) => sum + Number(rate ?? 0), 0);
}

/**
 * The one fault that strikes now, if any. `drawn` is a number from 0 to 1; where no share is set nothing is drawn, so that
 * a calm knob does not move the sequence of the others.
 */
export function strike<Kind extends string>(
  rates: Readonly<Partial<Record<Kind, number>>>,
  kinds: readonly Kind[],
  drawn: () => number,
): Kind | undefined {
  if (kinds.every((kind) => !rates[kind])) return undefined;
  let left = drawn();
  return kinds.find((kind) => {
    left -= rates[kind] ?? 0;
    return left < 0;
  });
}

/** Between these unix seconds everything answers 503; several windows may be set. */
const Window = z.strictObject({ from: z.number(), until: z.number() });
export const Outage = z.union([Window, z.array(Window).max(1000)]).nullable();

export function isOut(outage: z.output<typeof Outage>, now: number): boolean {
  return outage !== null && [outage].flat().some(({ from, until }) => now >= from && now < until);
}

/** The status that the next request fails with, if `failNext` says so; counts it down. */
export function takeFailure<F extends { count: number }>(knobs: { failNext: F | null }): F | undefined {
  const failure = knobs.failNext;
  if (!failure || failure.count <= 0) return undefined;
  failure.count -= 1;
  return failure;
}

/** Whether a knob of the kind "always, or so many times more" strikes now; counts it down. */
export function takeTime<Name extends string>(knobs: { [key in Name]: boolean | number }, name: Name): boolean {
  const left: boolean | number = knobs[name];
  if (typeof left === "boolean") return left;
  if (left > 0) knobs[name] = left - 1;
  return left > 0;
}
