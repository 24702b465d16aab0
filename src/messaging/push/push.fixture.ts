import { z } from "zod";
import type { MortalConnection } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { type JobProcess, jobProcess } from "../../../test/harness/jobs.ts";
import { migrationsOf } from "../../domain.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/index.ts";
import { type AnyRunner, defineRunner } from "../../jobs/runner.ts";
import type { Setting } from "../../kernel/config.ts";
import { silentLog } from "../../kernel/log.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarIn, calendarOf, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { usersDomain } from "../../people/users/index.ts";
import { PushChannel } from "../../providers/channels.ts";
import { ExpoPush } from "../../providers/expo.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";
import { contacts } from "../contacts/index.ts";
import { push } from "./index.ts";
import { invariants } from "./invariants.ts";
import { enqueuePushes, type NewPush } from "./outbox.ts";

export const rooms = [usersDomain(() => []), operations, contacts, push];

/** Far enough from midnight that all of a test happens on one day. */
const NOON = calendarIn("America/Los_Angeles").startOf(20_500) + 43_200;

type Config = readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];

/** A callback as it was queued: its job, and its arguments. */
export interface QueuedCallback {
  readonly name: string;
  readonly kwargs: { readonly data_raw: string; readonly [field: string]: unknown };
}

/** Jobs that only remember that they were called, for tests that look at callbacks and nothing else. */
const WithStory = z.looseObject({ data_raw: z.string() });
const noted = (name: `runners.${string}`) =>
  defineRunner({ name, category: 2, kwargs: WithStory, doc: "Takes note.", run: async () => {} });

export interface PushHouse extends TestContext {
  readonly sandbox: Sandbox;
  readonly main: JobProcess;
  /** Another process: with a connection that dies, or with other settings. */
  another(options?: { redis?: MortalConnection; config?: Config; accessToken?: string }): JobProcess;
  /** Runs a recurring job of the room once, as a worker would. */
  run(name: "send" | "ticket_hot_to_cold" | "check", process?: JobProcess, shuttingDown?: () => boolean): Promise<void>;
  /** Takes all callbacks off the job queue, in order. */
  takeCallbacks(): Promise<QueuedCallback[]>;
  /** Runs callbacks as a worker would, each name as one batch. */
  runCallbacks(callbacks: readonly QueuedCallback[], process?: JobProcess): Promise<void>;
  /** Takes and runs callbacks until there are none. */
  settleCallbacks(): Promise<QueuedCallback[]>;
  /** Counts of a family by day: today unless said otherwise. */
  counts(family: StatsFamily, daysAgo?: number): Promise<Record<string, number>>;
  queue(count: number, more?: Partial<NewPush>): Promise<readonly string[]>;
  length(key: string): Promise<number>;
  /** Forgets everything that happened, and it is noon of the first day again. */
  reset(): Promise<void>;
  /** What invariants are broken now. In most tests nobody runs jobs by themselves, so nobody has to attend purgatories. */
  violations(options?: { unattended?: boolean }): Promise<readonly string[]>;
}

export const token = (name: string) => `ExponentPushToken[${name.padEnd(22, "x")}]`;

export function newPush(name: string, more: Partial<NewPush> = {}): NewPush {
  return {
    pushToken: token(name),
    contents: { title: "Good morning", body: `A minute for you, ${name}`, channel_id: "daily" },
    failureJob: { name: "runners.push.default_failure", kwargs: {} },
    successJob: { name: "runners.push.default_success", kwargs: {} },
    ...more,
  };
}

export async function openPushHouse(options: { sql?: boolean } = {}): Promise<PushHouse> {
  const base = await openTestContext({ sql: options.sql });
  if (options.sql) await migrate(base.sql, rooms.flatMap(migrationsOf));
  const sandbox = await Sandbox.start({ clock: base.clock, log: silentLog, publicUrl: "http://127.0.0.1:9" });
  const runners = [
    ...(push.runners as readonly AnyRunner[]),
    noted("runners.test.failure"),
    noted("runners.test.success"),
  ];

  const another: PushHouse["another"] = ({ redis, config, accessToken } = {}) => {
    const expo = new ExpoPush({
      baseUrl: sandbox.url,
      timeout: 20,
      userAgent: "carillon/test",
      clock: base.clock,
      log: silentLog,
      accessToken,
    });
    const channel = new PushChannel(base, [expo]);
    return jobProcess(base, {
      runners,
      recurring: push.recurring,
      config,
      overrides: redis ? { redis } : {},
      providers: { push: channel },
    });
  };
  const own = another();
  const rendered = (key: string) => base.redis.topology.key(key as never);

  const house = {
    sandbox,
    main: own,
    another,
    async run(name: string, { ctx } = own, shuttingDown = () => false) {
      const runner = runners.find((each) => each.name === `runners.push.${name}`)!;
      await runner.run!(jobContext(ctx, runner, shuttingDown), {});
    },
    async takeCallbacks() {
      const raws = await base.redis.commands.lrange(rendered(jobKeys.hot()), 0, -1);
      await base.redis.commands.del(rendered(jobKeys.hot()));
      return raws.map((raw) => JSON.parse(raw) as QueuedCallback).filter(({ kwargs }) => "data_raw" in kwargs);
    },
    async runCallbacks(callbacks: readonly QueuedCallback[], { ctx } = own) {
      for (const name of new Set(callbacks.map((callback) => callback.name))) {
        const runner = runners.find((each) => each.name === name)!;
        const items = callbacks.filter((callback) => callback.name === name).map(({ kwargs }) => kwargs);
        if (!runner.runMany) continue;
        const outcomes = await runner.runMany(
          jobContext(ctx, runner, () => false),
          items,
        );
        for (const outcome of outcomes ?? []) if (!outcome.ok) throw outcome.error;
      }
    },
    async settleCallbacks() {
      const all: QueuedCallback[] = [];
      for (;;) {
        const taken = await house.takeCallbacks();
        if (taken.length === 0) return all;
        all.push(...taken);
        await house.runCallbacks(taken);
      }
    },
    async counts(family: StatsFamily, daysAgo = 0) {
      const date = calendarOf(own.ctx).unixDate(base.clock.now()) - daysAgo;
      const held = await base.redis.commands.hgetall(rendered(family.day(date)));
      return Object.fromEntries(Object.entries(held).map(([event, count]) => [event, Number(count)]));
    },
    async queue(count: number, more: Partial<NewPush> = {}) {
      const uids: string[] = [];
      for (let from = 0; from < count; from += 500) {
        const some = Array.from({ length: Math.min(500, count - from) }, (_, at) => newPush(`n${from + at}`, more));
        const queued = await enqueuePushes(own.ctx, some);
        if (queued.ok) uids.push(...queued.uids);
      }
      return uids;
    },
    async length(key: string) {
      const type = await base.redis.commands.type(rendered(key));
      return type === "zset" ? base.redis.commands.zcard(rendered(key)) : base.redis.commands.llen(rendered(key));
    },
    async reset() {
      await base.flush();
      sandbox.knobs.reset();
      sandbox.inbox.clear();
      base.clock.jump(NOON - base.clock.now());
    },
    violations: async ({ unattended = false } = {}) => {
      const looked = invariants.filter(({ name }) => unattended || name !== "push:purgatories_attended");
      return (await Promise.all(looked.map((each) => each.check(base)))).flat();
    },
  };
  return Object.defineProperties(house, {
    ...Object.getOwnPropertyDescriptors(base),
    close: {
      value: async () => {
        await sandbox.close();
        await base.close();
      },
    },
  }) as unknown as PushHouse;
}

function jobContext(ctx: JobProcess["ctx"], runner: AnyRunner, shuttingDown: () => boolean): JobContext {
  const started = ctx.clock.monotonic();
  return Object.create(ctx, {
    job: { value: { name: runner.name } },
    signal: { value: new AbortController().signal },
    shuttingDown: { value: shuttingDown },
    sleep: { value: (seconds: number) => ctx.clock.sleep(seconds) },
    budget: { value: { exhausted: () => ctx.clock.monotonic() - started >= runner.budget } },
    progress: { value: async () => {} },
  }) as JobContext;
}
