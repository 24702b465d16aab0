import { median, type Row } from "../kit.ts";
import { type BenchHouse, expectEachOnce, expectSentOnce, openBenchHouse, until } from "./house.ts";
import type { WorkerKind } from "./worker.ts";

/** A row without a peer: it has a goal instead, which it is to reach or to stay below. */
export interface GoalRow {
  readonly metric: string;
  readonly unit: string;
  readonly ours: number;
  readonly limit: number | null;
  readonly peer: null;
  readonly peerName: null;
  readonly ratio: null;
  readonly rounds: { readonly ours: readonly number[] };
}

export type ChannelRow = Row | GoalRow;

export interface Size {
  /** Messages a round. */
  readonly messages: number;
  readonly rounds: number;
  /** Mails that wait while sign-in codes overtake them. */
  readonly campaign: number;
}

export function goal(metric: string, unit: string, ours: readonly number[], limit: number | null = null): GoalRow {
  return { metric, unit, ours: median(ours), limit, peer: null, peerName: null, ratio: null, rounds: { ours } };
}

export interface ChannelPlan {
  readonly name: string;
  readonly unit: string;
  readonly kind: WorkerKind;
  readonly workers: number;
  /** The goals of stretches, messages per second. */
  readonly goals: Readonly<Record<string, number>>;
  /** Queues all messages; answers with their uids. */
  fill(house: BenchHouse, count: number): Promise<readonly string[]>;
  /** Lets the workers begin and sees all messages through; answers how many seconds each stretch took. */
  run(house: BenchHouse, count: number, begin: () => Promise<void>): Promise<Readonly<Record<string, number>>>;
  /** The uid of the message that a callback tells of. */
  uidIn(story: string): string;
}

/** What one round comes to. */
interface Measured {
  readonly filled: number;
  /** Messages per second of each stretch of the way, by its name. */
  readonly rates: Readonly<Record<string, number>>;
  readonly redisCalls: number;
  readonly sqlQueries: number;
  /** Microseconds of processor time a message: of the workers, of Redis, and of the process that holds the SQL engine. */
  readonly processor: { readonly workers: number; readonly redis: number; readonly sql: number };
}

/** Fills the queue, then lets the workers begin: the time runs from there until the last callback has been called. */
export async function measureChannel(plan: ChannelPlan, size: Size): Promise<ChannelRow[]> {
  const house = await openBenchHouse(plan.kind, plan.workers);
  const rounds: Measured[] = [];
  try {
    // The first round only warms the processes up.
    for (let round = 0; round <= size.rounds; round++) {
      const measured = await measureRound(plan, house, size.messages);
      if (round > 0) rounds.push(measured);
    }
  } finally {
    await house.close();
  }
  const name = `${plan.name}, ${plan.workers === 1 ? "one worker" : `${plan.workers} workers`}`;
  const row = (what: string, unit: string, of: (round: Measured) => number, limit?: number) =>
    goal(`${name}: ${what}`, unit, rounds.map(of), limit ?? null);
  return [
    ...(plan.workers === 1 ? [row("fill the queue", plan.unit, ({ filled }) => filled)] : []),
    ...Object.keys(rounds[0]!.rates).map((stretch) =>
      row(stretch, plan.unit, ({ rates }) => rates[stretch]!, plan.goals[stretch]),
    ),
    row("processor time of the workers a message", "us", ({ processor }) => processor.workers),
    row("processor time of Redis a message", "us", ({ processor }) => processor.redis),
    row("processor time of the SQL engine a message", "us", ({ processor }) => processor.sql),
    row("Redis calls a message", "calls", ({ redisCalls }) => redisCalls, 0.2),
    row("SQL queries a message", "queries", ({ sqlQueries }) => sqlQueries, 0.05),
  ];
}

async function measureRound(plan: ChannelPlan, house: BenchHouse, count: number): Promise<Measured> {
  await house.clear();
  let uids: readonly string[] = [];
  const filled = await seconds(async () => {
    uids = await plan.fill(house, count);
  });
  const before = { scripts: await scriptsServed(house), redis: await redisTime(house), sql: house.sqlTime() };
  let end!: Awaited<ReturnType<BenchHouse["work"]>>;
  const taken = await plan.run(house, count, async () => {
    end = await house.work();
  });
  const [redis, sql] = [(await redisTime(house)) - before.redis, house.sqlTime() - before.sql];
  const served = (await scriptsServed(house)) - before.scripts;
  const { spent, sent, heard } = await end();
  expectSentOnce(sent, count, plan.name);
  expectEachOnce(heard.map(plan.uidIn), uids, plan.name);
  if (served > spent.redis) throw new Error(`the workers say ${spent.redis} calls, and Redis ran ${served} scripts`);
  return {
    filled: count / filled,
    rates: Object.fromEntries(Object.entries(taken).map(([name, time]) => [name, count / time])),
    redisCalls: spent.redis / count,
    sqlQueries: spent.sql / count,
    processor: {
      workers: (spent.processor * 1e6) / count,
      redis: (redis * 1e6) / count,
      sql: (sql * 1e6) / count,
    },
  };
}

/** The scripts that the server ran; it counts the commands inside them too, so its other numbers are not calls. */
async function scriptsServed({ outside }: BenchHouse): Promise<number> {
  const statistics = await outside.redis.commands.info("commandstats");
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(statistics)?.[1] ?? 0);
}

/** Seconds of processor time that Redis has used. */
async function redisTime({ outside }: BenchHouse): Promise<number> {
  const usage = await outside.redis.commands.info("cpu");
  const of = (kind: string) => Number(new RegExp(`^used_cpu_${kind}:([0-9.]+)`, "m").exec(usage)?.[1] ?? 0);
  return of("sys") + of("user");
}

/** The whole way in one stretch. */
export const wholeWay: ChannelPlan["run"] = async (house, count, begin) => ({
  "whole way": await seconds(async () => {
    await begin();
    await until(() => house.progress.heard >= count, "all callbacks");
  }),
});

export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** In calls of 500, several under way at once, as a busy producer queues. */
export async function inGroups(
  count: number,
  queue: (
    from: number,
    to: number,
  ) => Promise<{ readonly ok: true; readonly uids: readonly string[] } | { readonly ok: false }>,
): Promise<readonly string[]> {
  let next = 0;
  const uids: string[] = [];
  const producer = async () => {
    while (next < count) {
      const from = next;
      next = Math.min(from + 500, count);
      const queued = await queue(from, next);
      if (!queued.ok) throw new Error("the queue took no more");
      uids.push(...queued.uids);
    }
  };
  await Promise.all([producer(), producer(), producer(), producer()]);
  return uids;
}
