import { sql } from "kysely";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { storyOf } from "../../mechanisms/message-log/index.ts";
import { clicksOfTouches } from "../links/service.ts";
import { traceMessage } from "../messages/service.ts";
import type { TouchChannel } from "./entries.ts";
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

/** Who was told what, and where it arrived. */
export interface Subject {
  readonly user_sub: string;
  readonly given_name: string | null;
  readonly family_name: string | null;
  readonly channel: TouchChannel;
  readonly event_slug: string | null;
  /** Null where the installation keeps no trail. */
  readonly event_parameters: Readonly<Record<string, unknown>> | null;
}

export interface Arrival {
  readonly destination: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly created_at: number;
}

export interface Timeline {
  readonly uid: string;
  /** Null until its trail or its arrival is written. */
  readonly subject: Subject | null;
  readonly arrivals: readonly Arrival[];
  /** Of its links. */
  readonly codes: readonly string[];
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

const ENDS: ReadonlySet<string> = new Set(["delivered", "failed"]);

/** Everything that is known of one touch, in the order in which it happened. */
export async function timelineOf(ctx: Context, uid: string): Promise<Timeline> {
  const { commands, topology } = ctx.redis;
  const [own, score, { subject, arrivals }, waiting] = await Promise.all([
    storyOf(ctx, uid),
    commands.zscore(topology.key(keys.pending()), uid),
    writtenOf(ctx, uid),
    commands.hvals(topology.key(keys.pendingItem({ uid }))),
  ]);
  const codes = codesOf(subject, waiting);
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
  // At one time a message ends before its touch does.
  const rank = ({ message_uid, step }: Moment) => Number(message_uid === null && ENDS.has(step));
  moments.sort((one, other) => one.at - other.at || rank(one) - rank(other));
  const state = own.findLast(({ step }) => STATES.has(step))?.step ?? "dispatched";
  return { uid, subject, arrivals, codes, state, pending: score !== null, moments };
}

/** What SQL has of it: the first step of its trail, and an arrival for each address that it reached. */
async function writtenOf(
  ctx: Pick<Context, "sql">,
  uid: string,
): Promise<{ readonly subject: Subject | null; readonly arrivals: readonly Arrival[] }> {
  const { rows } = await sql<Subject & { [field in keyof Arrival]: Arrival[field] | null }>`
    select users.sub as user_sub, users.given_name, users.family_name, log.event ->> 'channel' as channel, log.event ->> 'event' as event_slug,
      log.event -> 'event_parameters' as event_parameters, null as destination, null as message,
      null::float8 as created_at
    from user_touch_debug_log as log join users on users.id = log.user_id where log.uid = ${attemptUid({ uid })}
    union all
    select users.sub, users.given_name, users.family_name, row.channel, point.event_slug, null, row.destination, row.message,
      extract(epoch from row.created_at)::float8
    from user_touches as row join users on users.id = row.user_id
    left join touch_points as point on point.id = row.touch_point_id where row.send_uid = ${uid}
    order by created_at nulls first`.execute(ctx.sql.tables<TouchTables>());
  const [first] = rows;
  const subject = first && {
    user_sub: first.user_sub,
    given_name: first.given_name,
    family_name: first.family_name,
    channel: first.channel,
    event_slug: first.event_slug,
    event_parameters: first.event_parameters,
  };
  const arrivals = rows.flatMap(({ destination, message, created_at }) =>
    destination === null ? [] : [{ destination, message: message!, created_at: created_at! }],
  );
  return { subject: subject ?? null, arrivals };
}

/** The codes of its links: those in its parameters, as its trail keeps them, and those that its callbacks name. */
function codesOf(subject: Subject | null, waiting: readonly string[]): readonly string[] {
  const told = [...JSON.stringify(subject?.event_parameters ?? "").matchAll(LINK)].map(([, code]) => code!);
  return [...new Set([...told, ...waiting.flatMap(namedCodes)])];
}

function namedCodes(raw: string): readonly string[] {
  const parsed = Named.safeParse(JSON.parse(raw));
  return parsed.success ? parsed.data.kwargs.codes : [];
}
