import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { hostOf } from "./endpoint-address.ts";
import { forgetEndpoints } from "./known-endpoints.ts";
import { type Attempt, post } from "./post.ts";
import { settings } from "./settings.ts";
import type { DisabledReason, WebhookTables } from "./tables.ts";

/**
 * Delivering messages.
 *
 * Life of a message: pending -> claimed (its `due_at` lies ahead, so nobody else claims it) -> delivered, or pending again
 * with a later `due_at`, or failed. SQL is authoritative; a job is only a reason to look at a row. A worker that dies with
 * claimed rows leaves them pending, and the sweep queues them when their `due_at` is past. So each message is sent at
 * least once, and receivers know a repeat by its `webhook-id`.
 */
export interface DeliveryPlan {
  /** Seconds before each further attempt. */
  readonly delays: readonly number[];
  /** Queues these again, after so many seconds. */
  again(uids: readonly string[], delay: number): Promise<void>;
}

interface Claimed {
  readonly uid: string;
  readonly body: string;
  readonly attempts: number;
  readonly endpoint: {
    readonly id: number;
    readonly uid: string;
    readonly url: string;
    readonly secret_number: number;
    readonly previous_secret_until: number | null;
  };
  readonly disabled: boolean;
}

interface Settled {
  readonly message: Claimed;
  readonly attempt: Attempt | "disabled" | "unsent";
}

/** Longer than a run can take: its budget, and one answer after it. */
const LEASE = 120;
/** Clocks and rounding: a job that comes a moment early finds its row all the same. */
const EARLY = 1;
const LANES_AN_ENDPOINT = 8;

export async function deliverMessages(ctx: JobContext, uids: readonly string[], plan: DeliveryPlan): Promise<void> {
  const claimed = await claim(ctx, uids);
  if (claimed.length === 0) return;
  const settled = await attemptAll(ctx, claimed);
  const later = await settleMessages(ctx, settled, plan.delays);
  await settleEndpoints(ctx, settled);
  for (const [delay, again] of later) await plan.again(again, delay);
}

async function claim(ctx: JobContext, uids: readonly string[]): Promise<readonly Claimed[]> {
  const now = ctx.clock.now();
  const { rows } = await sql<Claimed>`
    update webhook_messages as message
    set attempts = message.attempts + 1, due_at = to_timestamp(${now + LEASE}::float8),
      last_attempt_at = to_timestamp(${now}::float8)
    from webhook_endpoints as endpoint
    where endpoint.id = message.endpoint_id and message.id in (
      select id from webhook_messages
      where uid = any(${[...uids]}::text[]) and status = 'pending' and due_at <= to_timestamp(${now + EARLY}::float8)
      order by id for update skip locked)
    returning message.uid, message.body, message.attempts, endpoint.disabled_at is not null as disabled,
      json_build_object('id', endpoint.id, 'uid', endpoint.uid, 'url', endpoint.url,
        'secret_number', endpoint.secret_number,
        'previous_secret_until', extract(epoch from endpoint.previous_secret_until)::float8) as endpoint`.execute(
    ctx.sql.tables<WebhookTables>(),
  );
  return rows;
}

/** Endpoints side by side and each with a few requests at once, so that a slow one holds up only itself. */
async function attemptAll(ctx: JobContext, claimed: readonly Claimed[]): Promise<readonly Settled[]> {
  const byEndpoint = new Map<number, Claimed[]>();
  for (const message of claimed) {
    const queue = byEndpoint.get(message.endpoint.id) ?? [];
    byEndpoint.set(message.endpoint.id, queue);
    queue.push(message);
  }
  const groups = await Promise.all([...byEndpoint.values()].map((queue) => attemptEndpoint(ctx, queue)));
  return groups.flat();
}

async function attemptEndpoint(ctx: JobContext, messages: readonly Claimed[]): Promise<readonly Settled[]> {
  const settled: Settled[] = [];
  let next = 0;
  // Where nobody answers, or nothing is wanted, the rest is not tried: it fails in the same way at once.
  let verdict: Attempt | undefined;
  const lane = async () => {
    while (next < messages.length) {
      const message = messages[next++]!;
      if (message.disabled) settled.push({ message, attempt: "disabled" });
      else if (verdict) settled.push({ message, attempt: verdict });
      else if (ctx.shuttingDown() || ctx.budget.exhausted()) settled.push({ message, attempt: "unsent" });
      else {
        const attempt = await post(ctx, message.endpoint, message);
        if (attempt.kind === "silent" || attempt.kind === "gone") verdict = attempt;
        settled.push({ message, attempt });
      }
    }
  };
  await Promise.all(Array.from({ length: LANES_AN_ENDPOINT }, lane));
  return settled;
}

interface Fate {
  readonly status: "pending" | "delivered" | "failed";
  /** Seconds until the next attempt of one that is pending. */
  readonly delay?: number;
  readonly answered: number | null;
  readonly error: string | null;
  /** All attempts were in vain. */
  readonly givenUp?: boolean;
}

function fateOf({ message, attempt }: Settled, delays: readonly number[]): Fate {
  if (attempt === "disabled") return { status: "failed", answered: null, error: "the endpoint is switched off" };
  if (attempt === "unsent") return { status: "pending", delay: 0, answered: null, error: null };
  const answered = "status" in attempt ? attempt.status : null;
  if (attempt.kind === "delivered") return { status: "delivered", answered, error: null };
  if (attempt.kind === "gone") return { status: "failed", answered, error: "the receiver wants no more: 410" };
  const delay = delays[message.attempts - 1];
  const { error } = attempt;
  return delay === undefined
    ? { status: "failed", answered, error, givenUp: true }
    : { status: "pending", delay, answered, error };
}

/** Writes down how attempts ended; answers which messages come again, by the seconds until then. */
async function settleMessages(
  ctx: JobContext,
  settled: readonly Settled[],
  delays: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const now = ctx.clock.now();
  const fates = settled.map((each) => ({ ...each, fate: fateOf(each, delays) }));
  const column = <T>(of: (each: (typeof fates)[number]) => T) => fates.map(of);
  const { rows } = await sql<{ uid: string }>`
    update webhook_messages as message
    set status = ended.status, last_status = ended.answered, last_error = ended.error,
      attempts = message.attempts - ended.unsent,
      due_at = case when ended.status = 'pending' then to_timestamp(${now}::float8 + ended.delay) end,
      delivered_at = case when ended.status = 'delivered' then to_timestamp(${now}::float8) end
    from unnest(
      ${column(({ message }) => message.uid)}::text[], ${column(({ message }) => message.attempts)}::integer[],
      ${column(({ fate }) => fate.status)}::text[], ${column(({ fate }) => fate.delay ?? 0)}::float8[],
      ${column(({ fate }) => fate.answered)}::integer[], ${column(({ fate }) => fate.error)}::text[],
      ${column(({ attempt }) => (attempt === "unsent" ? 1 : 0))}::integer[]
    ) as ended (uid, attempts, status, delay, answered, error, unsent)
    where message.uid = ended.uid and message.status = 'pending' and message.attempts = ended.attempts
    returning message.uid`.execute(ctx.sql.tables<WebhookTables>());
  // What somebody else took meanwhile, after a lease that was over or by sending it again, is theirs to settle.
  const ours = new Set(rows.map(({ uid }) => uid));
  warnOfGivenUp(
    ctx,
    fates.filter(({ message, fate }) => fate.givenUp && ours.has(message.uid)).map(({ message }) => message),
  );
  const later = new Map<number, string[]>();
  for (const { message, fate } of fates)
    if (fate.delay !== undefined && ours.has(message.uid))
      later.set(fate.delay, [...(later.get(fate.delay) ?? []), message.uid]);
  return later;
}

function warnOfGivenUp(ctx: JobContext, messages: readonly Claimed[]): void {
  if (messages.length === 0) return;
  const hosts = [...new Set(messages.map(({ endpoint }) => hostOf(endpoint.url)))].join(", ");
  ctx.alerts.warning("webhooks:given_up", `${messages.length} webhook messages to ${hosts} failed for good`);
}

/** An endpoint that took something works; one that only fails is watched, and switched off after days of it. */
async function settleEndpoints(ctx: JobContext, settled: readonly Settled[]): Promise<void> {
  const states = new Map<number, "works" | "fails" | "gone">();
  for (const { message, attempt } of settled) {
    if (attempt === "disabled" || attempt === "unsent") continue;
    const { id } = message.endpoint;
    const state = attempt.kind === "delivered" ? "works" : attempt.kind === "gone" ? "gone" : "fails";
    if (state === "gone" || states.get(id) === undefined || (state === "works" && states.get(id) === "fails"))
      states.set(id, state);
  }
  if (states.size === 0) return;
  const now = ctx.clock.now();
  const at = sql`to_timestamp(${now}::float8)`;
  const since = sql`to_timestamp(${now - ctx.config.get(settings.disableAfter)}::float8)`;
  const tooLong = sql`seen.state = 'fails' and endpoint.failing_since <= ${since}`;
  const { rows } = await sql<{ uid: string; url: string; disabled_reason: DisabledReason | null }>`
    update webhook_endpoints as endpoint
    set failing_since = case when seen.state = 'works' then null else coalesce(endpoint.failing_since, ${at}) end,
      disabled_at = case when seen.state = 'gone' or (${tooLong}) then ${at} end,
      disabled_reason = case when seen.state = 'gone' then 'gone' when ${tooLong} then 'failing' end
    from unnest(${[...states.keys()]}::bigint[], ${[...states.values()]}::text[]) as seen (id, state)
    where endpoint.id = seen.id and endpoint.disabled_at is null
      and (seen.state <> 'works' or endpoint.failing_since is not null)
    returning endpoint.uid, endpoint.url, endpoint.disabled_reason`.execute(ctx.sql.tables<WebhookTables>());
  for (const { uid, url, disabled_reason: reason } of rows) {
    if (reason === null) continue;
    forgetEndpoints(ctx);
    const why = reason === "gone" ? "it answered 410" : "it has only failed for days";
    ctx.alerts.warning("webhooks:endpoint_disabled", `${uid} at ${hostOf(url)} is switched off: ${why}`);
  }
}
