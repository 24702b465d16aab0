import type { Context } from "../../jobs/context.ts";
import {
  type KnownMessage,
  messagesTo,
  type Sighting,
  type Step,
  storyOf,
} from "../../mechanisms/message-log/index.ts";
import { whereIs as whereAreMails } from "../email/service.ts";
import { whereIs as whereArePushes } from "../push/service.ts";
import { whereIs as whereAreTexts } from "../sms/service.ts";
import { digester } from "./address-digest.ts";
import { callbacksOf } from "./callbacks.ts";

export type { KnownMessage, Sighting, Step };

export interface Trace {
  readonly uid: string;
  readonly channel: string;
  /** Where it is; empty for a message that has ended. */
  readonly now: readonly Sighting[];
  /** What happened to it, oldest first. */
  readonly steps: readonly Step[];
  /** Seconds from its first step to its last, or to now while it is somewhere. */
  readonly seconds: number | null;
}

type TraceContext = Pick<Context, "redis" | "sql" | "clock">;

/** Where a message is and what happened to it; undefined when nothing at all is known of it. */
export async function traceMessage(ctx: TraceContext, uid: string): Promise<Trace | undefined> {
  const now = await whereIs(ctx, uid);
  const steps = takenFirst(await storyOf(ctx, uid));
  const channel = now[0]?.channel ?? steps[0]?.channel;
  if (channel === undefined) return undefined;
  const [first, last] = [steps[0], steps.at(-1)];
  const until = now.length > 0 ? ctx.clock.now() : last?.at;
  const seconds = first && until !== undefined ? Math.max(0, Number((until - first.at).toFixed(6))) : null;
  return { uid, channel, now, steps, seconds };
}

/** What providers report of mails that they took. */
const REPORTED: ReadonlySet<string> = new Set(["delivered", "bounced", "complained"]);

/**
 * A report may come before anybody could note that the provider took the message, but not before it did: that is told
 * right before the report then, as the latest time at which it can have been.
 */
function takenFirst(steps: readonly Step[]): readonly Step[] {
  const reported = steps.findIndex(({ step }) => REPORTED.has(step));
  const taken = steps.findIndex(({ step }) => step === "accepted");
  if (reported === -1 || taken < reported) return steps;
  const ordered = steps.toSpliced(taken, 1).toSpliced(reported, 0, { ...steps[taken]!, at: steps[reported]!.at });
  return ordered.map((step, at) => {
    const next = ordered[at + 1];
    return { ...step, lasted: next ? Number((next.at - step.at).toFixed(6)) : null };
  });
}

/** A message that moved on during the first look is where it went in the second. */
async function whereIs(ctx: TraceContext, uid: string): Promise<readonly Sighting[]> {
  const first = await look(ctx, uid);
  return first.length > 0 ? first : look(ctx, uid);
}

async function look(ctx: TraceContext, uid: string): Promise<readonly Sighting[]> {
  const seen = await Promise.all(
    [whereArePushes, whereAreTexts, whereAreMails, callbacksOf].map((where) => where(ctx, [uid])),
  );
  return seen.flat();
}

export interface MessagePage {
  readonly items: readonly KnownMessage[];
  /** Pass it as `before` for older ones. */
  readonly next: number | undefined;
}

/** Messages of all channels to one address, newest first. */
export async function messagesForAddress(
  ctx: Pick<Context, "sql" | "config">,
  address: string,
  options: { readonly limit: number; readonly before?: number | undefined },
): Promise<MessagePage> {
  const items = await messagesTo(ctx, digester(ctx)(address), options);
  return { items, next: items.length < options.limit ? undefined : items.at(-1)?.first_at };
}
