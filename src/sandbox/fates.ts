import { z } from "zod";

/** What becomes of messages to one address, number or device, whatever else goes wrong. */
export const Fate = z.union([
  z.literal("never"),
  z.strictObject({ after: z.number().min(0).max(604_800) }),
  z.strictObject({ fail: z.literal("permanent") }),
  z.strictObject({ fail: z.literal("transient"), times: z.int().min(0).max(1_000_000) }),
]);
export type Fate = z.output<typeof Fate>;

export const RecipientKnobs = z.strictObject({
  /** So many programs fetch each link of each message as soon as it is taken. */
  previewBots: z.int().min(0).max(100),
  deliver: z.record(z.string(), Fate),
  /** Channels finish their messages, and whoever waits for them never hears of it. */
  dropCallbacks: z.boolean(),
});
export type RecipientKnobs = z.output<typeof RecipientKnobs>;

export type Met =
  | { readonly kind: "never" | "permanent" | "transient" }
  | { readonly kind: "after"; readonly seconds: number };

/** What becomes of a message to this receiver, if anything is set for them; a passing failure is counted down. */
export function meetFate({ deliver }: RecipientKnobs, to: string): Met | undefined {
  const name = Object.keys(deliver).find((each) => each.toLowerCase() === to.toLowerCase());
  const fate = name === undefined ? undefined : deliver[name];
  if (name === undefined || fate === undefined) return undefined;
  if (fate === "never") return { kind: "never" };
  if ("after" in fate) return { kind: "after", seconds: fate.after };
  if (fate.fail === "permanent") return { kind: "permanent" };
  if (fate.times === 0) return undefined;
  deliver[name] = { fail: "transient", times: fate.times - 1 };
  return { kind: "transient" };
}
