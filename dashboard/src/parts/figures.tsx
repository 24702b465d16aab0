import { Tooltip } from "@mantine/core";
import { useStatisticsTimezone } from "../api/session.ts";
import { useNow } from "../app/clock.ts";

/** How numbers, lengths of time and moments look, everywhere the same. */
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const bytes = ["B", "KiB", "MiB", "GiB", "TiB"];

type Shape = "whole" | "short" | "percent" | "bytes";

export function numberText(value: number, as: Shape = "whole"): string {
  if (as === "percent") return share.format(value);
  if (as === "short") return short.format(value);
  if (as === "bytes") {
    const power = value < 1 ? 0 : Math.min(bytes.length - 1, Math.floor(Math.log2(value) / 10));
    return `${fine.format(value / 1024 ** power)} ${bytes[power]}`;
  }
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? whole.format(value) : fine.format(value);
}

/** `sent mails` as the beginning of a sentence. */
export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** `1 job`, `2 jobs`. */
export function counted(count: number, one: string, many: string): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** What a field with a plural for a name counted: `1 message attempted`, `2 messages attempted`. */
export function countedField(name: string, count: number): string {
  const [first = "", ...rest] = name.replaceAll("_", " ").split(" ");
  const one = first.endsWith("ies") ? first.replace(/ies$/, "y") : first.replace(/([^su])s$/, "$1");
  return counted(count, [one, ...rest].join(" "), [first, ...rest].join(" "));
}

/** A number for people; a dash where there is none. */
export function Num({ value, as = "whole" }: { readonly value: number | null | undefined; readonly as?: Shape }) {
  if (value === null || value === undefined) return <span>–</span>;
  return (
    <span title={as === "short" || as === "bytes" ? whole.format(value) : undefined}>{numberText(value, as)}</span>
  );
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

/** `3 min 20 s`: the two largest units that matter. Below a second in milliseconds. */
export function durationText(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? "0 s" : `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${fine.format(seconds)} s`;
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

export function Duration({ seconds }: { readonly seconds: number | null | undefined }) {
  if (seconds === null || seconds === undefined) return <span>–</span>;
  return <span>{durationText(seconds)}</span>;
}

const clock = (timeZone?: string) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", ...(timeZone ? { timeZone } : {}) });
const viewersZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** `Nov 16, 2026, 5:35:36 AM`, in the viewer's timezone. Unix seconds. */
export const momentText = (at: number) => clock().format(new Date(at * 1000));

function agoText(at: number, now: number): string {
  const seconds = now - at;
  if (Math.abs(seconds) < 2) return "now";
  const text = durationText(Math.abs(Math.round(seconds)))
    .split(" ")
    .slice(0, 2)
    .join(" ");
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

interface TimeProps {
  /** Unix seconds. */
  readonly at: number | null | undefined;
  /** What stands there when it never happened. */
  readonly never?: string;
  /** `moment`: date and time; `ago`: how long ago, or in how long. */
  readonly as?: "moment" | "ago";
}

/** A moment in the viewer's timezone; the tooltip tells it in the timezone of the statistics too. */
export function Time({ at, never = "never", as = "ago" }: TimeProps) {
  const zone = useStatisticsTimezone();
  if (at === null || at === undefined) return <span>{never}</span>;
  const date = new Date(at * 1000);
  const own = clock().format(date);
  return (
    <Tooltip
      multiline
      label={
        <>
          {own} ({viewersZone})
          {zone !== viewersZone && (
            <>
              <br />
              {clock(zone).format(date)} ({zone}, statistics)
            </>
          )}
        </>
      }
    >
      <time dateTime={date.toISOString()}>{as === "ago" ? <Ago at={at} /> : own}</time>
    </Tooltip>
  );
}

/** `3 min 20 s ago`, as time goes on. */
export function Ago({ at }: { readonly at: number }) {
  return agoText(at, useNow());
}
