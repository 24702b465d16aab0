import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { forgetCharts as forgetChartsIn } from "../../insight/statistics/service.ts";
import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { claimPidFile, pidFileHolder } from "../../kernel/process/index.ts";
import { calendarOf, isoDate } from "../../mechanisms/dated-counters/index.ts";
import { cacheSettings } from "../../mechanisms/layered-cache/index.ts";
import { keys as reminderKeys } from "../../messaging/reminders/keys.ts";
import { dataFolders } from "../foundation.ts";
import { createDemoApp, FOUNDERS } from "./app.ts";
import { daysWithoutHistory, type Gap } from "./days.ts";
import { errors } from "./errors.ts";
import { handOver, handOverPeople } from "./handover.ts";
import { holdBackReminders, restoreReminders } from "./held-reminders.ts";
import { LAST_RECEIPTS, LAST_REMINDERS, liveThrough } from "./lapse.ts";
import { type Outcome, outcomesBetween } from "./outcomes.ts";
import { whyNoDemo } from "./permission.ts";
import { throwAway, timeLeftBehind } from "./scratch.ts";

/** A worker that told nothing for so many seconds is dead. */
const SILENCE = 90;

export interface HistoryOptions {
  readonly days: number;
  readonly people?: number;
  readonly seed?: number;
  readonly progress?: (done: number, total: number) => void;
  /** Ends early, with everything stored that happened until then. */
  readonly signal?: AbortSignal;
}

export interface HistoryReport {
  /** How many people were made at the beginning; none when they were there. */
  readonly created: number;
  readonly people: number;
  /** Days that were lived through now, each as ISO dates from and to. */
  readonly lived: readonly { readonly from: string; readonly to: string; readonly days: number }[];
  readonly alreadyThere: number;
  /** The day, as an ISO date, on which an earlier run had died that this one went on with. */
  readonly wentOnFrom: string | undefined;
  readonly messages: readonly Outcome[];
  readonly done: Readonly<Record<string, number>>;
  readonly runs: number;
  readonly failures: readonly { readonly job: string; readonly error: unknown }[];
  readonly seconds: number;
}

/**
 * Fills in the past of a demo: every one of the latest days on which nothing happened is lived through, by the real
 * pipeline on a virtual clock. Days that are there stay as they are, so a second run does nothing.
 *
 *   days missing ─▶ lived through beside the present, in a Redis of their own ─▶ stored in SQL ─▶ Redis thrown away
 *
 * A crash leaves the rows of what was done and the Redis in which the rest is under way, whose server may still run. The
 * next run goes on in it where the clock stood, so that nothing is done twice; or throws it away, should those days not be
 * asked for any more.
 */
export async function fillHistory(ctx: Context, options: HistoryOptions): Promise<HistoryReport> {
  const why = whyNoDemo(ctx.config);
  if (why) throw errors.demo_not_possible({ message: `There can be no demo here: ${why}` });
  await refuseBesideWorkers(ctx);
  const turn = claimPidFile(pidFileOf(ctx));
  if (!turn) throw errors.demo_under_way();
  try {
    return await fill(ctx, options);
  } finally {
    turn.release();
  }
}

const pidFileOf = ({ config }: Pick<Context, "config">) => join(dataFolders(config).root, "demo.pid");

/** Refuses to start a worker into a past that is being filled in. */
export function refuseWhileFilling(ctx: Pick<Context, "config">): void {
  if (pidFileHolder(pidFileOf(ctx)) !== undefined) throw errors.demo_under_way();
}

async function refuseBesideWorkers({ redis, clock }: Context): Promise<void> {
  const alive = await redis.commands.zcount(redis.topology.key(jobKeys.workers()), clock.now() - SILENCE, "+inf");
  if (alive > 0)
    throw errors.demo_beside_worker({
      message: `${alive === 1 ? "A worker" : `${alive} workers`} of this house ${alive === 1 ? "is" : "are"} running.`,
    });
}

async function fill(ctx: Context, options: HistoryOptions): Promise<HistoryReport> {
  const began = systemClock.monotonic();
  const app = await createDemoApp(ctx, options.people ?? FOUNDERS);
  if (!app) throw errors.demo_database_in_use();
  const { gaps, there, today } = await daysWithoutHistory(ctx, options.days);
  const calendar = calendarOf(ctx);
  const now = ctx.clock.now();
  const isFresh = await hasNoPresent(ctx);
  const folder = join(dataFolders(ctx.config).root, "demo");
  const diedAt = timeLeftBehind(folder);
  const lives = gaps.flatMap((gap) => {
    const joinsPresent = isFresh && gap.to === today;
    const rest = joinsPresent ? LAST_RECEIPTS : REST;
    const start = calendar.startOf(gap.from);
    const until = Math.min(calendar.startOf(gap.to + 1), now - rest);
    const goesOn = diedAt !== undefined && diedAt > start && diedAt < until + rest;
    // Early in the day there is nothing of it to live through yet.
    return goesOn || until - start >= MINIMUM
      ? [{ gap, joinsPresent, from: goesOn ? diedAt : start, until, goesOn }]
      : [];
  });
  // A past that goes on comes first: the Redis that it goes on in is the one that all of them use.
  lives.sort((one, other) => Number(other.goesOn) - Number(one.goesOn));
  if (!lives[0]?.goesOn) {
    await restoreReminders(ctx, folder);
    await throwAway(folder);
  }
  const all = lives.reduce((sum, { from, until }) => sum + until - from, 0);
  const report = { done: {} as Record<string, number>, runs: 0, failures: [] as HistoryReport["failures"][number][] };
  const lived: { readonly gap: Gap; readonly from: number; readonly until: number }[] = [];
  let before = 0;
  for (const { gap, joinsPresent, from, until, goesOn } of lives) {
    if (options.signal?.aborted) break;
    const progress = (time: number) =>
      options.progress?.(Math.round((before + time - from) / HOUR), Math.round(all / HOUR));
    // In the east it is the next day already, and those who heard of it from this past or the one before it have heard.
    await holdBackReminders(ctx, folder, goesOn ? calendar.unixDate(from) + 1 : gap.from);
    const { seed = 1, signal } = options;
    const past = await liveThrough(ctx, { gap, joinsPresent, from, until, seed, progress, signal, folder });
    try {
      await (past.joinsPresent ? handOver : handOverPeople)(past.scratch.connection, ctx.redis);
      for (const [what, times] of Object.entries(past.crowd.done)) report.done[what] = (report.done[what] ?? 0) + times;
      report.runs += Object.values(past.pipeline.runs).reduce((sum, count) => sum + count, 0);
      report.failures.push(...past.pipeline.failures);
    } finally {
      await past.close();
    }
    await restoreReminders(ctx, folder);
    await throwAway(folder);
    lived.push({ gap: { from: gap.from, to: calendar.unixDate(past.until - 1) }, from, until: past.until });
    before += until - from;
  }
  if (lived.length > 0) await forgetCharts(ctx);
  const messages = await Promise.all(lived.map(({ from, until }) => outcomesBetween(ctx, from, until + REST)));
  return {
    ...report,
    messages: summed(messages.flat()),
    created: app.created,
    people: app.people.length + (report.done.joined ?? 0),
    lived: lived.map(({ gap }) => shown(gap)),
    alreadyThere: there,
    wentOnFrom: lives[0]?.goesOn ? isoDate(calendar.unixDate(lives[0].from)) : undefined,
    seconds: systemClock.monotonic() - began,
  };
}

/** Charts from before know nothing of the days that were lived through now, and are kept until midnight. */
async function forgetCharts({ config, clock }: Context): Promise<void> {
  const { cache } = dataFolders(config);
  const kept = existsSync(cache) ? readdirSync(cache).map((name) => join(cache, name)) : [];
  const chosen = config.get(cacheSettings.folder);
  for (const folder of new Set([...kept, ...(chosen === undefined ? [] : [chosen])]))
    await forgetChartsIn(folder, clock);
}

const HOUR = 3600;
const REST = LAST_REMINDERS + LAST_RECEIPTS;
/** Seconds of a day that are worth living through. */
const MINIMUM = HOUR;

function summed(outcomes: readonly Outcome[]): readonly Outcome[] {
  const sums = new Map<string, Outcome>();
  for (const one of outcomes) {
    const name = `${one.channel} ${one.outcome}`;
    sums.set(name, { ...one, count: one.count + (sums.get(name)?.count ?? 0) });
  }
  return [...sums.values()];
}

const shown = ({ from, to }: Gap) => ({ from: isoDate(from), to: isoDate(to), days: to - from + 1 });

/** Whether no worker has given this house a present yet: nobody knows how far its reminders got. */
async function hasNoPresent({ redis }: Context): Promise<boolean> {
  return (await redis.commands.exists(redis.topology.key(reminderKeys.earliest()))) === 0;
}
