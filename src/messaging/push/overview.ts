import type { Context } from "../../jobs/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
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
