import { expect } from "vitest";
import { migrationsOf } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { audit, Catalogue } from "../../src/kernel/keyspace/index.ts";
import { migrate, type Sql } from "../../src/kernel/sql/index.ts";
import { calendarOf, readCounts, rotate, type StatsFamily } from "../../src/mechanisms/dated-counters/index.ts";
import type { NewMessage } from "../../src/sandbox/inbox.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { type MortalConnection, mortalConnection } from "../harness/chaos.ts";
import { MortalSql } from "../harness/chaos-sql.ts";
import type { TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";

/**
 * Days of messages through providers that misbehave one time in ten, in every way the simulators know, while processes
 * die, the database goes away and connections break; afterwards the lines run empty. Every message must have ended exactly
 * once, and every day must add up.
 *
 * The size of a test run is small. `npm run simulate` runs the same days at full size.
 */
export const size = {
  days: Number(process.env.CARILLON_SIM_DAYS ?? 7),
  messages: Number(process.env.CARILLON_SIM_MESSAGES ?? 500),
  seed: Number(process.env.CARILLON_SIM_SEED ?? 20261115),
};
export const FAULTS = 0.1;
/** Virtual seconds from one look of the jobs to the next. */
const STEP = size.messages > 10_000 ? 900 : 7200;
const STEPS = Math.round((size.days * 86_400) / STEP);
/** Longer than anything is waited for, tried again or asked about. */
const DRAIN_STEPS = Math.ceil((52 * 3600) / STEP);
export const TIMEOUT = Math.max(600_000, size.messages * 200);
const DEEPEST_DEATH = 14;

export type Trouble = "none" | "death" | "database" | "connections";

/** Everything that is drawn by lot. The same seed gives the same days. */
export class Weather {
  /** How often each trouble struck. */
  readonly struck: Record<Trouble, number> = { none: 0, death: 0, database: 0, connections: 0 };
  /** Nights in which the move of finished days to SQL died. */
  deathsAtNight = 0;
  #state: number;

  constructor(channel: string) {
    this.#state = [...channel].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), size.seed) >>> 0;
  }

  random(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }
  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }
  strikes(rate = FAULTS): boolean {
    return this.random() < rate;
  }
  oneOf<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
  /** The same small share for each of several faults, together as many as there are faults in all. */
  shares<const Kinds extends readonly string[]>(kinds: Kinds): Record<Kinds[number], number> {
    return Object.fromEntries(kinds.map((kind) => [kind, FAULTS / kinds.length])) as Record<Kinds[number], number>;
  }
}

/** How often each message ended, and how. */
export class Ends {
  readonly #ends = new Map<string, number>();
  succeeded = 0;
  failed = 0;

  note(uid: string, how: "succeeded" | "failed"): void {
    this.#ends.set(uid, (this.#ends.get(uid) ?? 0) + 1);
    this[how] += 1;
  }

  expectOnceEach(uids: readonly string[]): void {
    expect(uids).toHaveLength(size.messages);
    expect(uids.filter((uid) => this.#ends.get(uid) !== 1).map((uid) => [uid, this.#ends.get(uid) ?? 0])).toEqual([]);
    expect(this.#ends.size).toBe(uids.length);
    // Either without the other would mean that the days were not as bad, or not as good, as they should be.
    expect(this.succeeded).toBeGreaterThan(uids.length / 2);
    expect(this.failed).toBeGreaterThan(uids.length / 100);
  }
}

/** How often the provider took each message, by what makes it known. */
export class Taken {
  readonly #times = new Map<string, number>();

  constructor(sandbox: Sandbox, nameOf: (message: NewMessage) => string | undefined) {
    const { inbox } = sandbox;
    const add = inbox.add.bind(inbox);
    inbox.add = (message) => {
      const name = nameOf(message);
      if (name !== undefined) this.#times.set(name, (this.#times.get(name) ?? 0) + 1);
      return add(message);
    };
  }

  get messages(): number {
    return this.#times.size;
  }
  /** Messages that the provider got once more than once, counted for each time. */
  get repeats(): number {
    return [...this.#times.values()].reduce((sum, times) => sum + times - 1, 0);
  }
}

export interface Life {
  /** Gets how many messages arrive now, whether it is still faulty or the lines run empty, and how much time is to pass. */
  step(arriving: number, faulty: boolean, seconds: number): Promise<void>;
  /** Once a day. */
  night(faulty: boolean): Promise<unknown>;
}

/** Runs the days, and afterwards as many more as the lines need to run empty. */
export async function live(channel: string, { step, night }: Life): Promise<void> {
  const told = process.env.CARILLON_SIM_PROGRESS !== undefined;
  for (let at = 0; at < STEPS + DRAIN_STEPS; at++) {
    const arriving = Math.floor(((at + 1) * size.messages) / STEPS) - Math.floor((at * size.messages) / STEPS);
    await step(at < STEPS ? arriving : 0, at < STEPS, STEP);
    if (at % Math.round(86_400 / STEP) === 0) await night(at < STEPS);
    if (told && at % Math.round(21_600 / STEP) === 0) {
      const day = ((at * STEP) / 86_400).toFixed(2);
      process.stderr.write(`${channel}: ${at < STEPS ? `day ${day} of ${size.days}` : "the lines run empty"}\n`);
    }
  }
  await night(false);
}

/** The same surroundings without a database that answers. */
export function withoutDatabase<C extends { readonly sql: Sql }>(ctx: C): C {
  const gone = new MortalSql(ctx.sql, { dieAt: 1, death: "before" });
  return Object.defineProperties({}, {
    ...Object.getOwnPropertyDescriptors(ctx),
    sql: { value: gone, enumerable: true },
  } as PropertyDescriptorMap) as C;
}

/** Work as it is done in good and in bad times. */
export interface Deed {
  /** As the process that is always there. */
  well(): Promise<unknown>;
  /** As a process of its own whose connection dies. */
  dying(redis: MortalConnection): Promise<unknown>;
  withoutDatabase(): Promise<unknown>;
}

/** Does the work, and now and then something happens meanwhile. Whatever it throws then is part of the trouble. */
export async function amid(
  house: TestContext,
  weather: Weather,
  faulty: boolean,
  deed: Deed,
  certain?: Trouble,
): Promise<Trouble> {
  const troubles = ["death", "death", "database", "connections"] as const;
  const trouble: Trouble = certain ?? (faulty && weather.strikes() ? weather.oneOf(troubles) : "none");
  const command = 1 + weather.below(DEEPEST_DEATH);
  const kind = weather.oneOf(["before", "after"] as const);
  switch (trouble) {
    case "none":
      await finished(house, deed.well(), { mayFail: false });
      break;
    case "death": {
      const redis = await mortalConnection(house.server, { dieAt: command, death: kind });
      await finished(house, deed.dying(redis), { mayFail: true });
      redis.commands.disconnect();
      if (!redis.dead) return "none";
      break;
    }
    case "database":
      await finished(house, deed.withoutDatabase(), { mayFail: true });
      break;
    case "connections":
      await finished(house, deed.well(), { mayFail: true, breakAfter: command });
      await calm(house);
  }
  weather.struck[trouble] += 1;
  return trouble;
}

/** In the first night nothing is to be moved yet, and a death may come too late in any of them: so two have to be hit. */
const DEATHS_AT_NIGHT = 2;

/** The work of a night. There are few of them, so the first ones die for certain. */
export async function nightly(house: TestContext, weather: Weather, faulty: boolean, deed: Deed): Promise<void> {
  const certain = faulty && weather.deathsAtNight < DEATHS_AT_NIGHT ? "death" : undefined;
  if ((await amid(house, weather, faulty, deed, certain)) === "death") weather.deathsAtNight += 1;
}

/** A round trip to the server, in which whatever travels over other wires gets on too. */
export async function moment({ redis }: TestContext): Promise<void> {
  await redis.commands.ping().catch(() => {});
  await new Promise(setImmediate);
}

/** Waits for work that may sleep on the clock: when nothing else seems to happen, time passes. */
export async function finished(
  house: TestContext,
  work: Promise<unknown>,
  { mayFail, breakAfter }: { mayFail: boolean; breakAfter?: number },
): Promise<void> {
  let done = false;
  let failure: unknown;
  const ended = work
    .catch((error: unknown) => {
      failure = error;
    })
    .finally(() => {
      done = true;
    });
  for (let idle = 1; !done; idle++) {
    await moment(house);
    if (idle === breakAfter) await breakConnections(house);
    if (!done && idle % 60 === 0) await house.clock.advance(5).catch(() => {});
  }
  await ended;
  // A dead run's lock outlives it for two minutes; who comes in that time is sent away, and comes again.
  const sentAway = (failure as { code?: string } | undefined)?.code === "lock_held";
  if (failure !== undefined && !mayFail && !sentAway) throw failure;
}

async function breakConnections({ server }: TestContext): Promise<void> {
  const outsider = server.connect();
  await outsider.commands.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await outsider.close();
}

/** Everybody is connected again, those too who make Redis obey the clock. */
async function calm(house: TestContext): Promise<void> {
  await eventually(() => house.redis.commands.ping());
  await eventually(() => house.clock.advance(0.01).then(() => true));
}

export interface Sums {
  of(...events: string[]): number;
  failures(): number;
}

/** The counts of a family on every day since the first, wherever they are kept by now. */
export async function daysOf(ctx: KernelContext, family: StatsFamily, firstDate: number): Promise<readonly Sums[]> {
  const end = calendarOf(ctx).unixDate(ctx.clock.now()) + 1;
  const { days } = await readCounts(ctx, family, firstDate, end);
  return [...days.values()].map(({ counts }) => {
    const of = (...names: string[]) => names.reduce((sum, name) => sum + Number(counts[name] ?? 0), 0);
    const failed = Object.keys(counts).filter((name) => name.startsWith("failed_due_to_"));
    return { of, failures: () => of(...failed) };
  });
}

/** Finished days move from Redis to SQL, as every night. */
export async function rotateAll(ctx: KernelContext, families: readonly StatsFamily[]): Promise<void> {
  for (const family of families) await rotate(ctx, family, { calendar: calendarOf(ctx) });
}

export const total = (days: readonly Sums[], ...events: string[]) =>
  days.reduce((sum, day) => sum + day.of(...events), 0);

/** The tables of every room, since what one does to contact methods others follow, and the audit looks at all. */
export async function furnish(sql: Sql): Promise<void> {
  await migrate(sql, domains.flatMap(migrationsOf));
}

/** No key is unknown or malformed, and every invariant of every room holds. */
export async function expectOrder(ctx: KernelContext): Promise<void> {
  const invariants = domains.flatMap((room) => room.invariants ?? []);
  const report = await audit(ctx, new Catalogue(domains), { invariants, deep: true });
  expect(report.findings).toEqual([]);
}
