import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { newUid } from "../../kernel/ids.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { forgetCall, wasQueued } from "./enqueue.ts";
import { errors } from "./errors.ts";
import type { TouchTables } from "./tables.ts";

/** How long a repeat gets the first answer, in seconds. */
const KEPT = 604_800;
/** How long what was prepared and not sent may wait for a repeat; later its links may be gone. */
const PREPARED = 3_600;

type RequestContext = Pick<Context, "sql" | "redis" | "clock">;

/** A request in two steps, of which the second does nothing when it is repeated with the same call uid. */
export interface Request<Answer> {
  prepare(seed: string | undefined): Promise<Answer>;
  send(prepared: Answer, callUid: string): Promise<void>;
  /** What was prepared is not wanted after all. */
  drop(prepared: Answer): Promise<void>;
}

/**
 * Runs a request once for each idempotency key.
 *
 *   key known ─▶ prepared: the answer is in SQL ─▶ sent: the queue has the call uid ─▶ marked as sent
 *
 * Of repeats that come at once one prepares, and all send the same. A death after preparing leaves the answer, and one
 * after sending leaves the call uid, so that a repeat sends the same once and gets the same answer. A request that found no
 * room keeps what was prepared for its repeat.
 */
export async function onceForKey<Answer>(
  ctx: RequestContext,
  key: string | undefined,
  request: unknown,
  steps: Request<Answer>,
): Promise<Answer> {
  if (key === undefined) return once(ctx, steps);
  const hash = createHash("sha256").update(canonicalJson(request)).digest("base64url");
  const seed = createHash("sha256").update(`${key}\n${hash}`).digest("base64url");
  const held = await claim<Answer>(ctx, key, hash);
  if (held.sent) return held.response!;
  const isKept = held.response !== null && (await isGood(ctx, held.prepared_at, seed));
  const answer = isKept ? held.response! : await prepare(ctx, key, held.prepared_at, steps, seed);
  await steps.send(answer, seed);
  await sql`update touch_requests set sent = true where key = ${key}`.execute(ctx.sql.tables<TouchTables>());
  return answer;
}

const isRefusal = (error: unknown) =>
  error instanceof CarillonError && (error.status < 500 || errors.touch_backpressure.matches(error));

/** Nobody can repeat it, so nothing of it is remembered. */
async function once<Answer>(ctx: RequestContext, steps: Request<Answer>): Promise<Answer> {
  const answer = await steps.prepare(undefined);
  const callUid = newUid("tcu");
  try {
    await steps.send(answer, callUid);
  } catch (error) {
    // A refusal is certain; after anything else it may have been sent.
    if (isRefusal(error)) await steps.drop(answer);
    throw error;
  }
  // Should this fail, it is forgotten after a week.
  await forgetCall(ctx, callUid).catch(() => undefined);
  return answer;
}

interface Held<Answer> {
  readonly request_hash: string;
  readonly response: Answer | null;
  readonly prepared_at: number | null;
  readonly sent: boolean;
}

async function claim<Answer>(ctx: RequestContext, key: string, hash: string): Promise<Held<Answer>> {
  const db = ctx.sql.tables<TouchTables>();
  await sql`
    insert into touch_requests (key, request_hash, created_at)
    values (${key}, ${hash}, to_timestamp(${ctx.clock.now()}::float8)) on conflict (key) do nothing`.execute(db);
  const { rows } = await sql<Held<Answer>>`
    select request_hash, response, extract(epoch from prepared_at)::float8 as prepared_at, sent
    from touch_requests where key = ${key}`.execute(db);
  const held = rows[0] ?? { request_hash: hash, response: null, prepared_at: null, sent: false };
  if (held.request_hash !== hash) throw errors.idempotency_key_reused();
  return held;
}

/** What was prepared long ago is good only if it was sent then. */
async function isGood(ctx: RequestContext, preparedAt: number | null, callUid: string): Promise<boolean> {
  return ctx.clock.now() - (preparedAt ?? 0) < PREPARED || wasQueued(ctx, callUid);
}

/** Of several that prepare at once the first one's answer is kept, and the others drop theirs. */
async function prepare<Answer>(
  ctx: RequestContext,
  key: string,
  before: number | null,
  steps: Request<Answer>,
  seed: string,
): Promise<Answer> {
  const db = ctx.sql.tables<TouchTables>();
  const answer = await steps.prepare(seed);
  const { rows } = await sql`
    update touch_requests set response = ${JSON.stringify(answer)}::jsonb,
      prepared_at = to_timestamp(${ctx.clock.now()}::float8)
    where key = ${key} and not sent
      and extract(epoch from prepared_at)::float8 is not distinct from ${before}::float8 returning id`.execute(db);
  if (rows.length > 0) return answer;
  await steps.drop(answer);
  const { rows: kept } = await sql<{ response: Answer }>`
    select response from touch_requests where key = ${key}`.execute(db);
  return kept[0]!.response;
}

export async function forgetRequests(ctx: Pick<Context, "sql" | "clock">): Promise<void> {
  await sql`delete from touch_requests where created_at < to_timestamp(${ctx.clock.now() - KEPT}::float8)`.execute(
    ctx.sql.tables<TouchTables>(),
  );
}
