import { type AddressInfo, createServer } from "node:net";
import { sql } from "kysely";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { migrationsOf } from "../../domain.ts";
import { access } from "../../infrastructure/access/index.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import type { JobContext } from "../../jobs/context.ts";
import { type Context, JobQueue, RecurringSet } from "../../jobs/index.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { AnyRunner } from "../../jobs/runner.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import { Config, type Setting } from "../../kernel/config.ts";
import { Catalogue, type KeyName } from "../../kernel/keyspace/index.ts";
import { silentLog } from "../../kernel/log.ts";
import type { RedisConnection } from "../../kernel/redis/index.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarOf, readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { Locks } from "../../mechanisms/lock/index.ts";
import { usersDomain } from "../../people/users/index.ts";
import { SmsChannel } from "../../providers/channels.ts";
import { twilioAccounts } from "../../providers/settings.ts";
import { TwilioSms } from "../../providers/twilio.ts";
import { SANDBOX_TWILIO, Sandbox } from "../../sandbox/sandbox.ts";
import { buildServer } from "../../surfaces/http/index.ts";
import { contacts } from "../contacts/index.ts";
import { type FailureStory, readFailure, readSuccess, type SuccessStory } from "./callbacks.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS } from "./defaults.ts";
import { sms } from "./index.ts";
import { invariants } from "./invariants.ts";
import { enqueueSms } from "./service.ts";
import { settings } from "./settings.ts";

const rooms = [usersDomain(() => []), access, operations, contacts, sms];

export type SmsContext = Context & { readonly alerts: AlertRecorder };

export interface SmsHouse {
  readonly base: TestContext;
  readonly ctx: SmsContext;
  readonly sandbox: Sandbox;
  readonly url: string;
  /** The same house as another process, perhaps a mortal one, or with other settings. */
  process(options?: { redis?: RedisConnection; config?: readonly (readonly [Setting<never>, unknown])[] }): SmsContext;
  /** Runs a job to its end, letting virtual time pass while it sleeps. */
  run(runner: AnyRunner, ctx?: SmsContext): Promise<void>;
  /** How long jobs rested since the house was cleared, in seconds. */
  readonly rests: readonly number[];
  /** Runs the queued callbacks as a worker would; answers their names. */
  callbacks(ctx?: SmsContext): Promise<readonly string[]>;
  /** What those callbacks were told since the house was cleared, in order. */
  readonly stories: readonly (FailureStory | SuccessStory)[];
  text(phoneNumber: string, body?: string): Promise<string>;
  /** What today and yesterday counted: events, and words by event. */
  counts(family: StatsFamily): Promise<{ events: Record<string, number>; words: Record<string, object> }>;
  length(key: KeyName<"list" | "zset">): Promise<number>;
  /** The texts that the simulated provider took. */
  outbox(): readonly { to: string; text: string; sid: string }[];
  query<T>(text: string): Promise<readonly T[]>;
  /** Fails when the room's invariants do not hold. */
  audit(): Promise<void>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The room over real engines, a real server on loopback, and the simulated provider. */
export async function openSms(): Promise<SmsHouse> {
  const base = await openTestContext({ sql: true });
  await migrate(base.sql, rooms.flatMap(migrationsOf));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const sandbox = await Sandbox.start({ clock: base.clock, log: silentLog, publicUrl: url });
  const { accountSid, authToken } = SANDBOX_TWILIO;
  const config = new Config([]).with(
    [twilioAccounts.twilio.accountSid, accountSid],
    [twilioAccounts.twilio.authToken, authToken],
    [settings.publicUrl, url],
  );
  const process: SmsHouse["process"] = (options = {}) => {
    const overrides = options.redis ? { redis: options.redis, cacheRedis: options.redis } : {};
    const kernel = base.process({ ...overrides, config: config.with(...(options.config ?? [])) });
    const recurring = new RecurringSet(sms.recurring, "America/Los_Angeles");
    const jobs = new JobQueue(kernel, { runners: sms.runners, recurring });
    const twilio = new TwilioSms({
      baseUrl: sandbox.url,
      accountSid,
      authToken,
      messagingServiceSid: `MG${"0".repeat(32)}`,
      timeout: 20,
      userAgent: "carillon/test",
      clock: base.clock,
      log: silentLog,
    });
    const providers = { sms: new SmsChannel(kernel, [twilio]) };
    return Object.defineProperties(
      { jobs, locks: new Locks(kernel), catalogue: new Catalogue(rooms), providers },
      Object.getOwnPropertyDescriptors(kernel),
    ) as unknown as SmsContext;
  };
  const ctx = process();
  const app = await buildServer(ctx, rooms);
  await app.listen({ host: "127.0.0.1", port });
  const { commands, topology } = base.redis;
  const query = async <T>(text: string) => (await sql.raw<T>(text).execute(base.sql.tables())).rows;

  const rests: number[] = [];
  const stories: (FailureStory | SuccessStory)[] = [];
  let asleep = 0;
  /** The clock as runs see it: their rests are noted, and pass quickly. */
  const restingClock = (clock: SmsContext["clock"]): SmsContext["clock"] => {
    const sleep: typeof clock.sleep = (seconds, signal) => {
      rests.push(seconds);
      asleep += 1;
      return clock.sleep(seconds, signal).finally(() => {
        asleep -= 1;
      });
    };
    return new Proxy(clock, {
      get(target, name) {
        if (name === "sleep") return sleep;
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  const jobContext = (around: SmsContext, name: string): JobContext => {
    const deadline = around.clock.monotonic() + 50;
    const clock = restingClock(around.clock);
    const job = { name, uid: undefined, jobUid: undefined, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 };
    return Object.defineProperties(
      {},
      {
        ...Object.getOwnPropertyDescriptors(around),
        ...Object.getOwnPropertyDescriptors({
          clock,
          job,
          signal: new AbortController().signal,
          shuttingDown: () => false,
          sleep: (seconds: number) => clock.sleep(seconds),
          budget: { exhausted: () => clock.monotonic() >= deadline },
          progress: async () => {},
          bounce: () => new Error("bounce"),
        }),
      },
    ) as unknown as JobContext;
  };

  // The simulated provider remembers over tests, so no two texts have the same words.
  let texts = 0;
  const house: SmsHouse = {
    base,
    ctx,
    sandbox,
    url,
    process,
    rests,
    stories,
    async run(runner, around = ctx) {
      let done = false;
      const running = runner.run!(jobContext(around, runner.name), {}).finally(() => {
        done = true;
      });
      running.catch(() => {});
      let idle = 0;
      while (!done) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        // A rest passes quickly; a run that does nothing for long waits for a lock.
        if (!done && (asleep > 0 || ++idle % 100 === 0)) await base.clock.advance(0.5);
      }
      await running;
    },
    async callbacks(around = ctx) {
      const names: string[] = [];
      for (;;) {
        const raws = await commands.lpop(topology.key(jobKeys.hot()), 500);
        if (!raws) return names;
        const entries = raws.map(
          (raw) => JSON.parse(raw) as { name: string; rjob?: string; kwargs: { data_raw?: string } },
        );
        for (const { name, kwargs } of entries) {
          if (name === DEFAULT_FAILURE) stories.push(readFailure(kwargs.data_raw!));
          if (name === DEFAULT_SUCCESS) stories.push(readSuccess(kwargs.data_raw!));
        }
        for (const runner of sms.runners) {
          const items = entries.filter(({ name, rjob }) => name === runner.name && rjob === undefined);
          if (items.length === 0 || !runner.runMany) continue;
          names.push(...items.map(({ name }) => name));
          const outcomes = await runner.runMany(
            jobContext(around, runner.name),
            items.map(({ kwargs }) => kwargs) as never,
          );
          for (const outcome of outcomes ?? []) if (!outcome.ok) throw outcome.error;
        }
      }
    },
    async text(phoneNumber, body = `Time to breathe ${++texts}`) {
      const job = (name: string) => ({ name, kwargs: {} });
      const answer = await enqueueSms(ctx, [
        { phoneNumber, body, failureJob: job(DEFAULT_FAILURE), successJob: job(DEFAULT_SUCCESS) },
      ]);
      if (!answer.ok) throw new Error(answer.reason);
      return answer.uids[0]!;
    },
    async counts(family) {
      const today = calendarOf(ctx).unixDate(base.clock.now());
      const events: Record<string, number> = {};
      const words: Record<string, Record<string, number>> = {};
      const add = (into: Record<string, number>, from: Readonly<Record<string, string>>) => {
        for (const [name, value] of Object.entries(from)) into[name] = (into[name] ?? 0) + Number(value);
      };
      // Virtual time may have passed midnight since the text was queued.
      for (const date of [today - 1, today]) {
        const day = await readDayAsIs(ctx, family, date);
        add(events, day.events);
        for (const [event, held] of Object.entries(day.breakdowns)) {
          if (Object.keys(held).length === 0) continue;
          words[event] ??= {};
          add(words[event], held);
        }
      }
      return { events, words };
    },
    async length(key) {
      const name = topology.key(key);
      return (await commands.type(name)) === "zset" ? commands.zcard(name) : commands.llen(name);
    },
    outbox: () =>
      sandbox.inbox
        .all()
        .filter(({ channel, direction }) => channel === "sms" && direction === "out")
        .map(({ to, text, provider_id }) => ({ to: String(to), text: String(text), sid: provider_id })),
    query,
    async audit() {
      for (const { name, check } of invariants) {
        const violations = await check(ctx);
        if (violations.length > 0) throw new Error(`${name}: ${violations.join("; ")}`);
      }
    },
    async clear() {
      await base.flush();
      rests.length = 0;
      stories.length = 0;
      sandbox.knobs.reset();
      sandbox.inbox.clear();
      sandbox.twilio.stopped.clear();
      for (const table of ["suppressed_phone_numbers", "contact_method_log", "stat_deltas", "users"])
        await query(`delete from ${table}`);
    },
    async close() {
      await sandbox.close();
      await app.close();
      await base.close();
    },
  };
  return house;
}
