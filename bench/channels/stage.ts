import { median, type Row } from "../kit.ts";
import type { BenchHouse, Spent } from "./house.ts";

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

/** What one round of a channel comes to. */
export interface Round {
  readonly filled: number;
  /** Messages per second of each stretch of the way, by its name. */
  readonly rates: Readonly<Record<string, number>>;
  readonly redisCalls: number;
  readonly sqlQueries: number;
}

export interface ChannelPlan {
  readonly name: string;
  readonly unit: string;
  /** The goals of stretches, messages per second. */
  readonly goals: Readonly<Record<string, number>>;
  readonly house: BenchHouse;
  /** Queues all messages. */
  fill(count: number): Promise<void>;
  /** Has a worker started and sees all messages through; answers how many seconds each stretch took. */
  run(count: number, start: () => Promise<void>): Promise<Readonly<Record<string, number>>>;
  /** Fails unless each message was sent once and ended once. */
  prove(count: number): Promise<void>;
}

/** Fills the queue, then lets the worker start: the time runs from there until the last callback has been called. */
export async function measureChannel(plan: ChannelPlan, size: Size): Promise<ChannelRow[]> {
  const { house } = plan;
  const rounds: Round[] = [];
  // The first round only warms the process up.
  for (let round = 0; round <= size.rounds; round++) {
    await house.clear();
    const filled = await seconds(() => plan.fill(size.messages));
    const before = house.spent();
    const scriptsBefore = await scriptsServed(house);
    let stop = async () => {};
    const taken = await plan.run(size.messages, async () => {
      stop = await house.work();
    });
    const spent = since(before, house.spent());
    const served = (await scriptsServed(house)) - scriptsBefore;
    await stop();
    await plan.prove(size.messages);
    await house.expectPeace();
    if (served < spent.scripts) throw new Error(`${spent.scripts} scripts were sent and ${served} were served`);
    if (round > 0)
      rounds.push({
        filled: size.messages / filled,
        rates: Object.fromEntries(Object.entries(taken).map(([name, time]) => [name, size.messages / time])),
        redisCalls: spent.redis / size.messages,
        sqlQueries: spent.sql / size.messages,
      });
  }
  const { name, unit, goals } = plan;
  return [
    goal(
      `${name}: fill the queue`,
      unit,
      rounds.map(({ filled }) => filled),
    ),
    ...Object.keys(rounds[0]!.rates).map((stretch) =>
      goal(
        `${name}: ${stretch}`,
        unit,
        rounds.map(({ rates }) => rates[stretch]!),
        goals[stretch] ?? null,
      ),
    ),
    goal(
      `${name}: Redis calls a message`,
      "calls",
      rounds.map(({ redisCalls }) => redisCalls),
      0.2,
    ),
    goal(
      `${name}: SQL queries a message`,
      "queries",
      rounds.map(({ sqlQueries }) => sqlQueries),
      0.05,
    ),
  ];
}

/** The scripts that the server ran; it counts the commands inside them too, so its other numbers are not calls. */
async function scriptsServed({ outside }: BenchHouse): Promise<number> {
  const statistics = await outside.redis.commands.info("commandstats");
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(statistics)?.[1] ?? 0);
}

const since = (before: Spent, now: Spent): Spent => ({
  redis: now.redis - before.redis,
  scripts: now.scripts - before.scripts,
  sql: now.sql - before.sql,
});

export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** In calls of 500, several under way at once, as a busy producer queues. */
export async function inGroups(count: number, queue: (from: number, to: number) => Promise<void>): Promise<void> {
  let next = 0;
  const producer = async () => {
    while (next < count) {
      const from = next;
      next = Math.min(from + 500, count);
      await queue(from, next);
    }
  };
  await Promise.all([producer(), producer(), producer(), producer()]);
}
