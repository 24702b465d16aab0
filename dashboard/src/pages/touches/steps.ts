import type { Answer } from "../../api/index.ts";
import type { Tone } from "../../app/theme.ts";

export type Timeline = Answer<"get", "/api/1/admin/touches/{uid}">;
export type Moment = Timeline["moments"][number];

/** What a moment of a touch is called, and how it is to be seen. */
const TEXTS: Readonly<Record<string, string>> = {
  queued: "Queued",
  dispatched: "Handed to its channel",
  accepted: "Accepted by the provider",
  updated: "News from the provider",
  asked_about: "Asked the provider",
  delivered: "Delivered",
  confirmed: "Confirmed",
  retried: "Tried again later",
  failed_transiently: "Failed for now",
  silent: "The provider is silent",
  failed: "Failed",
  abandoned: "Given up",
  expired: "Nobody told its end",
  unreachable: "Nobody could be reached",
  stale: "Waited too long",
  improper: "Could not be made",
  clicked: "Clicked",
  signed_in: "Signed in after the click",
};

const TONES: Readonly<Record<string, Tone>> = {
  queued: "neutral",
  dispatched: "info",
  accepted: "info",
  updated: "info",
  asked_about: "info",
  delivered: "good",
  confirmed: "good",
  clicked: "good",
  signed_in: "good",
  retried: "warn",
  failed_transiently: "warn",
  silent: "warn",
};
const GOOD_END = /^(delivered|sent|read|received|succeeded|ok)\b/i;

/** `ended` says nothing by itself: what the provider said last does. */
export function labelOf({ step, detail }: Pick<Moment, "step" | "detail">): string {
  if (step === "ended" && detail !== null) return `Ended: ${detail}`;
  return TEXTS[step] ?? step.replaceAll("_", " ");
}

export function toneOf({ step, detail }: Pick<Moment, "step" | "detail">): Tone {
  if (step === "ended") return GOOD_END.test(detail ?? "") ? "good" : "bad";
  return TONES[step] ?? "bad";
}

export const COLORS: Readonly<Record<Tone, string>> = {
  good: "var(--series-good)",
  bad: "var(--series-bad)",
  warn: "var(--series-email)",
  info: "var(--series-push)",
  neutral: "var(--series-other)",
};

/** The four stations that every touch would like to pass, with when it did. */
export function stationsOf({ moments, state }: Timeline) {
  const first = (...steps: readonly string[]) => moments.find(({ step }) => steps.includes(step))?.at ?? null;
  const lost = ["failed", "expired", "unreachable", "stale", "improper"].includes(state) ? state : null;
  return [
    { label: "Queued", at: first("queued") },
    { label: "Handed over", at: first("dispatched") },
    {
      label: lost === null ? "Delivered" : labelOf({ step: lost, detail: null }),
      at: first("delivered", lost ?? "delivered"),
      isBad: lost !== null,
    },
    { label: "Clicked", at: first("clicked") },
  ];
}
