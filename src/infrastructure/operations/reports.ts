import { parseEntry } from "../../jobs/entry.ts";
import { type Context, jobKeys } from "../../jobs/index.ts";
import type { CatalogueEntry, KeyName } from "../../kernel/keyspace/index.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { type ReportKey, type RunState, readReport } from "../../mechanisms/run-report/index.ts";

/** What the last run of one job did, as an operator sees it. */
export interface JobReport {
  readonly key: string;
  readonly runner: string;
  readonly state: RunState;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  /** Seconds. */
  readonly running_time: number | null;
  readonly stop_reason: string | null;
  readonly counts: Readonly<Record<string, string>>;
}

type Reported = CatalogueEntry & { readonly report: NonNullable<CatalogueEntry["report"]> };

/** The report of every job that keeps one, whether it ever ran or not, by runner. */
export async function readReports(ctx: Pick<Context, "redis" | "catalogue">): Promise<JobReport[]> {
  const declared = ctx.catalogue.entries.filter(isReport);
  if (declared.length === 0) return [];
  const atWork = await runnersAtWork(ctx);
  const reports = declared.map(async (entry): Promise<JobReport> => {
    const { runner } = entry.report;
    const locked = atWork.has(runner) || (await holdsRunnerLock(ctx, runner));
    const { state, startedAt, finishedAt, runningTime, stopReason, counts } = await readReport(ctx, keyOf(entry), {
      locked,
    });
    return {
      key: entry.pattern,
      runner,
      state,
      started_at: startedAt ?? null,
      finished_at: finishedAt ?? null,
      running_time: runningTime ?? null,
      stop_reason: stopReason ?? null,
      counts,
    };
  });
  return (await Promise.all(reports)).sort((a, b) => (a.runner < b.runner ? -1 : a.runner > b.runner ? 1 : 0));
}

/** A job has one report, so its key has a fixed name. */
function isReport(entry: CatalogueEntry): entry is Reported {
  return entry.report !== undefined && entry.compiled.parameters.length === 0;
}

function keyOf({ pattern, report }: Reported): ReportKey {
  return Object.assign(() => pattern as KeyName<"hash">, { report });
}

/**
 * The runners that some worker holds an entry of. Every family has its own lock, which a report does not name; but
 * whoever runs a job holds its entry, and loses it when the worker is buried.
 */
async function runnersAtWork(ctx: Pick<Context, "redis">): Promise<ReadonlySet<string>> {
  const { commands, topology } = ctx.redis;
  const workers = await commands.zrange(topology.key(jobKeys.workers()), "0", "-1");
  const names = workers.flatMap((worker_uid) => topology.copies(jobKeys.running({ worker_uid })));
  const held = await Promise.all(names.map((name) => commands.hvals(name)));
  return new Set(held.flat().flatMap((raw) => nameOf(raw)));
}

function nameOf(raw: string): string[] {
  const parsed = parseEntry(raw);
  return parsed.ok ? [parsed.job.name] : [];
}

async function holdsRunnerLock(ctx: Pick<Context, "redis">, runner: string): Promise<boolean> {
  const key = lockKeys.runnerLock({ runner: runner.replace(/^runners\./, "") });
  return (await ctx.redis.commands.exists(ctx.redis.topology.key(key))) === 1;
}
