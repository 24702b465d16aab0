import type { Context } from "../../jobs/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { type ReportKey, readReport } from "../../mechanisms/run-report/index.ts";
import { checkEntry, sendEntry } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";

type ReadContext = Pick<Context, "redis" | "clock" | "config">;

export interface QueueInfo {
  readonly length: number;
  /** When the entry that is next joined the queue; null: the queue is empty, or that entry cannot be read. */
  readonly oldest_last_queued_at: number | null;
}

export function sendQueueInfo(ctx: ReadContext): Promise<QueueInfo> {
  return listInfo(ctx, keys.toSend(), (raw) => sendEntry.decode(raw).last_queued_at);
}

export function hotListInfo(ctx: ReadContext): Promise<QueueInfo> {
  return listInfo(ctx, keys.hot(), (raw) => checkEntry.decode(raw).last_queued_at);
}

export async function coldSetInfo(ctx: ReadContext): Promise<QueueInfo & { readonly num_overdue: number }> {
  const { commands, topology } = ctx.redis;
  const cold = topology.key(keys.cold());
  const rested = ctx.clock.now() - ctx.config.get(settings.receiptDelay);
  const [length, num_overdue, [oldest]] = await Promise.all([
    commands.zcard(cold),
    commands.zcount(cold, "-inf", rested),
    commands.zrangeBuffer(cold, 0, "0"),
  ]);
  return { length, num_overdue, oldest_last_queued_at: timeIn(oldest, (raw) => checkEntry.decode(raw).last_queued_at) };
}

/** Every place on the way of notifications in one look: how many are there, and since when or until when. */
export interface Overview {
  readonly to_send: QueueInfo;
  readonly retrying: { readonly length: number; readonly next_due_at: number | null };
  readonly send_purgatory: number;
  readonly cold: QueueInfo & { readonly num_overdue: number };
  readonly hot: QueueInfo;
  readonly ticket_purgatory: number;
  /** Entries that nobody could read, set aside until somebody looks at them. */
  readonly quarantined: number;
  /** Whether a run of the job works right now. */
  readonly running: { readonly send: boolean; readonly cold_to_hot: boolean; readonly check: boolean };
  readonly checked_at: number;
}

export async function overviewOf(ctx: ReadContext): Promise<Overview> {
  const { commands, topology } = ctx.redis;
  const length = (key: KeyName<"list">) => commands.llen(topology.key(key));
  const held = async (key: KeyName<"string">) => (await commands.exists(topology.key(key))) === 1;
  const retrying = topology.key(keys.retrying());
  // All of it is asked for at once, and goes to Redis together.
  const [to_send, cold, hot, again, [, due], sending, asking, aside, send, cold_to_hot, check] = await Promise.all([
    sendQueueInfo(ctx),
    coldSetInfo(ctx),
    hotListInfo(ctx),
    commands.zcard(retrying),
    commands.zrange(retrying, 0, "0", "WITHSCORES"),
    length(keys.sendPurgatory()),
    length(keys.ticketPurgatory()),
    Promise.all([keys.toSend(), keys.hot()].map((queue) => length(quarantineOf(queue)))),
    held(keys.sendLock()),
    held(keys.coldToHotLock()),
    held(keys.checkLock()),
  ]);
  return {
    to_send,
    retrying: { length: again, next_due_at: due === undefined ? null : Number(due) },
    send_purgatory: sending,
    cold,
    hot,
    ticket_purgatory: asking,
    quarantined: aside.reduce((sum, count) => sum + count, 0),
    running: { send, cold_to_hot, check },
    checked_at: ctx.clock.now(),
  };
}

async function listInfo(ctx: ReadContext, key: KeyName<"list">, read: (raw: Buffer) => number): Promise<QueueInfo> {
  const { commands, topology } = ctx.redis;
  const [length, oldest] = await Promise.all([
    commands.llen(topology.key(key)),
    commands.lindexBuffer(topology.key(key), 0),
  ]);
  return { length, oldest_last_queued_at: timeIn(oldest, read) };
}

/** An entry that cannot be read is set aside when its turn comes; until then it has no age. */
function timeIn(raw: Buffer | null | undefined, read: (raw: Buffer) => number): number | null {
  if (!raw) return null;
  try {
    return read(raw);
  } catch {
    return null;
  }
}

/** What the last run of a job did, and how many entries lie in its purgatory. */
export async function lastRun(
  ctx: Pick<Context, "redis">,
  report: ReportKey,
  purgatory?: KeyName<"list">,
): Promise<Record<string, number | string | undefined>> {
  const { commands, topology } = ctx.redis;
  const [{ startedAt, finishedAt, runningTime, stopReason, counts }, purgatory_size] = await Promise.all([
    readReport(ctx, report, { locked: false }),
    purgatory ? commands.llen(topology.key(purgatory)) : 0,
  ]);
  if (finishedAt === undefined) throw errors.push_job_never_finished();
  return {
    started_at: startedAt,
    finished_at: finishedAt,
    running_time: runningTime,
    stop_reason: stopReason,
    ...Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, Number(value)])),
    purgatory_size,
  };
}
