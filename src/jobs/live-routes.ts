import { z } from "zod";
import type { KeyName } from "../kernel/keyspace/index.ts";
import { defineRoute, type Route } from "../kernel/route.ts";
import { type ReportKey, readReport } from "../mechanisms/run-report/index.ts";
import type { Context } from "./context.ts";

const route = defineRoute<Context>();

/** How a room tells of its jobs' last runs. */
export interface LiveRoutesPlan {
  readonly root: `/api/1/admin/${string}`;
  /** In what a run's length is told. */
  readonly unit: "seconds" | "milliseconds";
  /** What the length of a purgatory is called. */
  readonly purgatory?: string;
  /** What is answered before the first run has finished. */
  neverFinished(): Error;
}

export interface LastRunPlan {
  readonly report: ReportKey;
  /** Tells a run that is under way from one that failed. */
  readonly lock?: KeyName<"string">;
  readonly purgatory?: KeyName<"list">;
}

/** Reads for administrators below one path: how things are at this moment, so nobody may keep the answer. */
export function liveRoutes(plan: LiveRoutesPlan) {
  const LastRun = z
    .record(z.string(), z.union([z.number(), z.string(), z.null()]))
    .meta({ description: `When it ran, for how many ${plan.unit}, why it stopped, and what it counted` });
  const live = <T extends z.ZodType>(
    path: string,
    summary: string,
    answer: T,
    read: (ctx: Context) => Promise<z.input<T>>,
  ): Route<Context> =>
    route({
      method: "GET",
      path: `${plan.root}/${path}`,
      access: "admin",
      summary,
      responses: { 200: answer },
      handle: async (ctx) => ({ status: 200, body: await read(ctx), headers: { "cache-control": "no-store" } }),
    });
  const lastRun = (path: string, job: string, run: LastRunPlan): Route<Context> =>
    live(path, `What the last run of ${job} did`, LastRun, (ctx) => readLastRun(ctx, plan, run));
  return { live, lastRun };
}

async function readLastRun(
  { redis }: Pick<Context, "redis">,
  { unit, purgatory: name = "purgatory_size", neverFinished }: LiveRoutesPlan,
  { report, lock, purgatory }: LastRunPlan,
): Promise<Record<string, number | string | null>> {
  const { commands, topology } = redis;
  const locked = lock !== undefined && (await commands.exists(topology.key(lock))) === 1;
  const last = await readReport({ redis }, report, { locked });
  if (last.finishedAt === undefined) throw neverFinished();
  return {
    state: last.state,
    started_at: last.startedAt ?? null,
    finished_at: last.finishedAt,
    running_time: last.runningTime === undefined ? null : last.runningTime * (unit === "seconds" ? 1 : 1000),
    stop_reason: last.stopReason ?? null,
    ...Object.fromEntries(Object.entries(last.counts).map(([count, value]) => [count, Number(value)])),
    ...(purgatory ? { [name]: await commands.llen(topology.key(purgatory)) } : {}),
  };
}
