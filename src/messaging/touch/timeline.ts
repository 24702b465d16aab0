import { sql } from "kysely";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { storyOf } from "../../mechanisms/message-log/index.ts";
import { clicksOfTouches } from "../links/service.ts";
import { traceMessage } from "../messages/service.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { attemptUid } from "./plan.ts";
import type { TouchTables } from "./tables.ts";

/** A moment in the life of a touch: its own steps, those of its messages, and what people did with its links. */
export interface Moment {
  readonly at: number;
  /** `queued`, `dispatched`, `accepted`, `delivered`, `failed`, `clicked`, and whatever else a channel tells. */
  readonly step: string;
  /** The message that it is about; null for the touch itself. */
  readonly message_uid: string | null;
  readonly provider: string | null;
  readonly detail: string | null;
}

export interface Timeline {
  readonly uid: string;
  /** `queued`, `dispatched`, `delivered`, `failed`, `expired`, `unreachable`, `stale` or `improper`. */
  readonly state: string;
  /** Whether its end is still waited for. */
  readonly pending: boolean;
  readonly moments: readonly Moment[];
}

const Named = z.object({ kwargs: z.object({ codes: z.array(z.string()) }) });
const MOST_MESSAGES = 20;
const LINK = /\/l\/([A-Za-z0-9_-]{1,255})/g;
const STATES: ReadonlySet<string> = new Set([
  "queued",
  "dispatched",
  "delivered",
  "failed",
  "expired",
  "unreachable",
  "stale",
  "improper",
]);

/** Everything that is known of one touch, in the order in which it happened. */
export async function timelineOf(ctx: Context, uid: string): Promise<Timeline> {
  const { commands, topology } = ctx.redis;
  const [own, score, codes] = await Promise.all([
    storyOf(ctx, uid),
    commands.zscore(topology.key(keys.pending()), uid),
    codesOf(ctx, uid),
  ]);
  if (own.length === 0 && score === null) throw errors.touch_not_found();
  const messageUids = own.flatMap(({ step, detail }) => (step === "dispatched" && detail ? [detail] : []));
  const [traces, clicks] = await Promise.all([
    Promise.all(messageUids.slice(0, MOST_MESSAGES).map((messageUid) => traceMessage(ctx, messageUid))),
    clicksOfTouches(ctx, [{ touchUid: uid, codes }]),
  ]);
  const moments: Moment[] = own.map(({ at, step, provider, detail }) => ({
    at,
    step,
    message_uid: step === "dispatched" ? detail : null,
    provider,
    detail: step === "dispatched" ? null : detail,
  }));
  for (const trace of traces)
    for (const { at, step, provider, detail } of trace?.steps ?? [])
      moments.push({ at, step, message_uid: trace!.uid, provider, detail });
  for (const { clicked_at: at, track_type } of clicks.get(uid) ?? [])
    moments.push({
      at,
      step: track_type === "on_click" ? "clicked" : "signed_in",
      message_uid: null,
      provider: null,
      detail: null,
    });
  moments.sort((one, other) => one.at - other.at);
  const state = own.findLast(({ step }) => STATES.has(step))?.step ?? "dispatched";
  return { uid, state, pending: score !== null, moments };
}

/** The codes of its links: those in its parameters, as its trail keeps them, and those that its callbacks name. */
async function codesOf(ctx: Context, uid: string): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const waiting = await commands.hvals(topology.key(keys.pendingItem({ uid })));
  const { rows } = await sql<{ parameters: string | null }>`
    select (event -> 'event_parameters')::text as parameters from user_touch_debug_log
    where uid = ${attemptUid({ uid })}`.execute(ctx.sql.tables<TouchTables>());
  const told = [...(rows[0]?.parameters ?? "").matchAll(LINK)].map(([, code]) => code!);
  return [...new Set([...told, ...waiting.flatMap(namedCodes)])];
}

function namedCodes(raw: string): readonly string[] {
  const parsed = Named.safeParse(JSON.parse(raw));
  return parsed.success ? parsed.data.kwargs.codes : [];
}
