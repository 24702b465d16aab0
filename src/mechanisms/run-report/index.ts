import type { KernelContext } from "../../kernel/context.ts";
import { decimal, fields, integer, type KeyName, optional, text } from "../../kernel/keyspace/index.ts";

/**
 * What the last run of a job did: one hash a job.
 *
 * `startRun` writes the start alone; `finish` writes everything else in one command, inside the job's lock. A run that
 * throws never finishes, so the old end stays behind the new start: with the lock still held it is running, without it
 * the last run failed. Nothing repairs that and nothing has to; the next run writes over it.
 */
export interface ReportKey {
  (): KeyName<"hash">;
  readonly report:
    | { readonly runner: string; readonly prefix?: "last_"; readonly unit: "seconds" | "milliseconds" }
    | undefined;
}

/** The fields of a report with these counts, for the declaration of its key. */
export const reportFields = <const Names extends readonly string[]>(names: Names) =>
  fields({
    started_at: optional(decimal),
    finished_at: optional(decimal),
    running_time: optional(decimal),
    stop_reason: optional(text),
    ...(Object.fromEntries(names.map((name) => [name, optional(integer)])) as {
      [Name in Names[number]]: ReturnType<typeof optional<number>>;
    }),
  });

export type StopReason = "list_exhausted" | "time_exhausted" | "signal" | "backpressure" | "credentials";

export interface RunOutcome<Counts extends string = string> {
  readonly stopReason: StopReason;
  /** Every count of the report, zeros included. */
  readonly counts: Readonly<Record<Counts, number | string>>;
}

export interface Run<Counts extends string = string> {
  readonly startedAt: number;
  finish(outcome: RunOutcome<Counts>): Promise<void>;
}

type ReportContext = Pick<KernelContext, "redis" | "clock">;

/** Decimal text without exponent, at most six decimals. */
function decimalText(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(6).replace(/\.?0+$/, "");
}

function planOf(key: ReportKey) {
  if (!key.report) throw new TypeError(`${key()} is not declared as a run report`);
  return { name: key(), prefix: key.report.prefix ?? "", perSecond: key.report.unit === "seconds" ? 1 : 1000 };
}

/** Writes the start and gives the way to write the end. */
export async function startRun<Counts extends string = string>(
  ctx: ReportContext,
  key: ReportKey,
): Promise<Run<Counts>> {
  const { name, prefix, perSecond } = planOf(key);
  const rendered = ctx.redis.topology.key(name);
  const startedAt = ctx.clock.now();
  const started = ctx.clock.monotonic();
  await ctx.redis.commands.hset(rendered, `${prefix}started_at`, decimalText(startedAt));
  return {
    startedAt,
    async finish({ stopReason, counts }) {
      const fields: Record<string, string> = {
        finished_at: decimalText(ctx.clock.now()),
        running_time: decimalText((ctx.clock.monotonic() - started) * perSecond),
        stop_reason: stopReason,
      };
      for (const [count, value] of Object.entries<number | string>(counts))
        fields[count] = typeof value === "number" ? decimalText(value) : value;
      await ctx.redis.commands.hset(
        rendered,
        Object.entries(fields).flatMap(([field, value]) => [prefix + field, value]),
      );
    },
  };
}

export type RunState = "never" | "running" | "ok" | "last_failed";

export interface RunReport {
  readonly state: RunState;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Seconds, whatever unit the hash keeps. */
  readonly runningTime: number | undefined;
  readonly stopReason: string | undefined;
  /** All other fields, without the prefix. */
  readonly counts: Readonly<Record<string, string>>;
}

/** Reads a report. `locked` says whether the job's lock is held now, which the hash alone cannot tell. */
export async function readReport(
  ctx: Pick<KernelContext, "redis">,
  key: ReportKey,
  options: { readonly locked: boolean },
): Promise<RunReport> {
  const { name, prefix, perSecond } = planOf(key);
  const held = await ctx.redis.commands.hgetall(ctx.redis.topology.key(name));
  const bare = Object.fromEntries(
    Object.entries(held).map(([field, value]) => [
      field.startsWith(prefix) ? field.slice(prefix.length) : field,
      value,
    ]),
  );
  const { started_at, finished_at, running_time, stop_reason, ...counts } = bare;
  const number = (written: string | undefined) => (written === undefined ? undefined : Number(written));
  const [startedAt, finishedAt, took] = [number(started_at), number(finished_at), number(running_time)];
  return {
    state: stateOf(startedAt, finishedAt, options.locked),
    startedAt,
    finishedAt,
    runningTime: took === undefined ? undefined : took / perSecond,
    stopReason: stop_reason,
    counts,
  };
}

function stateOf(startedAt: number | undefined, finishedAt: number | undefined, locked: boolean): RunState {
  if (startedAt === undefined) return locked ? "running" : "never";
  if (finishedAt !== undefined && finishedAt >= startedAt) return "ok";
  return locked ? "running" : "last_failed";
}

/** A job that holds its batch in a purgatory while it works on it. */
export interface PurgatoryJob {
  readonly purgatory: KeyName<"list" | "zset">;
  readonly lock: KeyName<"string">;
  readonly report: ReportKey;
}

/** Runs that end so have finished what they held; others leave it to the next one. */
const FINISHED = new Set(["list_exhausted", "time_exhausted"]);

/**
 * Seconds from the start of a run that died to when its batch must have been taken up: the run itself, the lease of its
 * lock, and the next run. All these jobs run every minute at least.
 */
const TAKEN_UP_WITHIN = 600;

/**
 * Purgatories that nobody works on, each in a sentence: the last run of their job said that it had finished, or it died
 * and no other followed.
 */
export async function leftInPurgatories(ctx: ReportContext, jobs: readonly PurgatoryJob[]): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const found = await Promise.all(
    jobs.map(async ({ purgatory, lock, report }) => {
      const [held, locked] = await Promise.all([
        commands.exists(topology.key(purgatory)),
        commands.exists(topology.key(lock)),
      ]);
      if (held === 0 || locked === 1) return [];
      const { state, startedAt = 0, stopReason = "" } = await readReport(ctx, report, { locked: false });
      if (state === "ok" && FINISHED.has(stopReason))
        return [`${purgatory} is not empty, although the last run of its job ended with ${stopReason}`];
      return state === "last_failed" && ctx.clock.now() - startedAt > TAKEN_UP_WITHIN
        ? [`${purgatory} is not empty, and no run of its job followed the one that died`]
        : [];
    }),
  );
  return found.flat();
}
