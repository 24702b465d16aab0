import { type AddressInfo, createServer } from "node:net";
import { sql } from "kysely";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { migrationsOf } from "../../domain.ts";
import { access } from "../../infrastructure/access/index.ts";
import { createAdminToken } from "../../infrastructure/access/service.ts";
import { settings as accessSettings } from "../../infrastructure/access/settings.ts";
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
import { migrate, type Sql } from "../../kernel/sql/index.ts";
import { calendarOf, readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { Locks } from "../../mechanisms/lock/index.ts";
import { usersDomain } from "../../people/users/index.ts";
import { EmailChannel } from "../../providers/channels.ts";
import type { EmailProvider, EmailQuota } from "../../providers/email.ts";
import { SesEmail } from "../../providers/ses.ts";
import { emailSettings } from "../../providers/settings.ts";
import { SmtpEmail } from "../../providers/smtp.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";
import { TOPIC_ARN } from "../../sandbox/sns.ts";
import { buildServer } from "../../surfaces/http/index.ts";
import { contacts } from "../contacts/index.ts";
import { emailTemplates } from "../email_templates/index.ts";
import { email } from "./index.ts";
import { keys } from "./keys.ts";
import { enqueueMails, type NewMail } from "./service.ts";
import { settings } from "./settings.ts";

const rooms = [usersDomain(() => []), access, operations, contacts, emailTemplates, email];

export type EmailContext = Context & { readonly alerts: AlertRecorder };
type Settings = readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];

interface ProcessOptions {
  readonly redis?: RedisConnection;
  readonly sql?: Sql;
  readonly config?: Settings;
  readonly provider?: EmailProvider;
  /** Several, the preferred one first. */
  readonly providers?: readonly EmailProvider[];
}

export interface EmailHouse {
  readonly base: TestContext;
  readonly ctx: EmailContext;
  readonly sandbox: Sandbox;
  readonly url: string;
  readonly admin: string;
  /** The same house as another process, perhaps a mortal one, with other settings or another provider. */
  process(options?: ProcessOptions): EmailContext;
  /** A client of the simulated mail server. */
  smtp(): EmailProvider;
  /** A client of the simulated mail service, or of one elsewhere. */
  ses(endpoint?: string): EmailProvider;
  /** Runs a job to its end, letting virtual time pass while it sleeps. */
  run(runner: AnyRunner, ctx?: EmailContext, shuttingDown?: () => boolean): Promise<void>;
  /** Runs the queued callbacks as a worker would; answers their names. */
  callbacks(ctx?: EmailContext): Promise<readonly string[]>;
  /** Queues a mail with a sign-in code; answers its uid. */
  code(to: string): Promise<string>;
  mail(mail: NewMail): Promise<string>;
  /** Has the simulated topic report on mails. */
  listen(): void;
  /** Waits until so much news has come over HTTP. */
  news(count: number): Promise<void>;
  /** What today and yesterday counted: events, and words by event. */
  counts(family: StatsFamily): Promise<{ events: Record<string, number>; words: Record<string, object> }>;
  length(key: KeyName<"list" | "zset">): Promise<number>;
  /** Whom the simulated providers took mails for, oldest first. */
  outbox(): readonly { to: string; raw: string }[];
  query<T>(text: string): Promise<readonly T[]>;
  /** Fails when the room's invariants do not hold. */
  audit(): Promise<void>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

export const sample = (to: string): NewMail => ({
  email: to,
  template: "sample",
  parameters: { name: "Ada", message: "Time to breathe" },
});

/** A provider in this process: it takes every mail, and remembers whose it took. */
export class Taker implements EmailProvider {
  readonly name = "taker";
  readonly hasReceipts = true;
  readonly taken: string[] = [];
  fails = false;
  /** Happens before each mail is taken. */
  meanwhile: (uid: string) => Promise<void> | void = () => {};

  async send({ tags = {} }: Parameters<EmailProvider["send"]>[0]) {
    const uid = tags.uid!;
    await this.meanwhile(uid);
    if (this.fails)
      return { ok: false, identifier: "SESServerError", subidentifier: "500", retryable: true, extra: null } as const;
    this.taken.push(uid);
    return { ok: true, messageId: this.idFor(uid), hasReceipts: true } as const;
  }
  idFor(uid: string): string {
    return `m-${uid}-${this.taken.length}`;
  }
  async quota(): Promise<EmailQuota | undefined> {
    return { maxPerSecond: 1_000, max24h: 1e6, sent24h: 0, sendingEnabled: true };
  }
  async reset() {}
  async close() {}
}

/** The same process, and all that it says into its log. */
export function overheard(around: EmailContext): { readonly ctx: EmailContext; readonly said: unknown[] } {
  const said: unknown[] = [];
  const note = (...words: unknown[]) => void said.push(words);
  const log = { trace: note, debug: note, info: note, warn: note, error: note, fatal: note, child: () => log };
  const described = { ...Object.getOwnPropertyDescriptors(around), log: { value: log, enumerable: true } };
  return { ctx: Object.defineProperties({}, described) as EmailContext, said };
}

/** A port that is ours until we need it: other test files look for theirs at the same time. */
async function heldPort(): Promise<{ readonly port: number; release(): Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, release: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** The room over real engines, a real server on loopback, and the simulated providers. */
export async function openEmail(): Promise<EmailHouse> {
  const base = await openTestContext({ sql: true });
  await migrate(base.sql, rooms.flatMap(migrationsOf));
  const { port, release } = await heldPort();
  const url = `http://127.0.0.1:${port}`;
  const sandbox = await Sandbox.start({
    clock: base.clock,
    log: silentLog,
    publicUrl: url,
    subscribing: "at first mail",
  });
  const config = new Config([]).with(
    [accessSettings.rootSecret, "a root secret for tests, long enough"],
    [settings.publicUrl, url],
    [emailSettings.snsTopicArns, [TOPIC_ARN]],
    [emailSettings.snsBaseUrl, sandbox.url],
  );
  const ses = (endpoint = sandbox.url) =>
    new SesEmail({
      endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: "sandbox", secretAccessKey: "sandbox" },
      timeout: 10,
      userAgent: "carillon/test",
      clock: base.clock,
    });
  const process: EmailHouse["process"] = (options = {}) => {
    const overrides = {
      ...(options.redis ? { redis: options.redis, cacheRedis: options.redis } : {}),
      ...(options.sql ? { sql: options.sql } : {}),
    };
    const kernel = base.process({ ...overrides, config: config.with(...((options.config ?? []) as [])) });
    const recurring = new RecurringSet(email.recurring, "America/Los_Angeles");
    const jobs = new JobQueue(kernel, { runners: email.runners, recurring });
    const providers = { email: new EmailChannel(kernel, options.providers ?? [options.provider ?? ses()]) };
    return Object.defineProperties(
      { jobs, locks: new Locks(kernel), catalogue: new Catalogue(rooms), providers },
      Object.getOwnPropertyDescriptors(kernel),
    ) as unknown as EmailContext;
  };
  const ctx = process();
  const app = await buildServer(ctx, rooms);
  await release();
  await app.listen({ host: "127.0.0.1", port });
  const { token: admin } = await createAdminToken(ctx, { label: "test" });
  const { commands, topology } = base.redis;
  const query = async <T>(text: string) => (await sql.raw<T>(text).execute(base.sql.tables())).rows;

  const jobContext = (around: EmailContext, name: string, shuttingDown = () => false): JobContext => {
    const deadline = around.clock.monotonic() + 50;
    return Object.defineProperties(
      {
        job: { name, uid: undefined, jobUid: undefined, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 },
        signal: new AbortController().signal,
        shuttingDown,
        sleep: (seconds: number) => around.clock.sleep(seconds),
        budget: { exhausted: () => around.clock.monotonic() >= deadline },
        progress: async () => {},
        bounce: () => new Error("bounce"),
      },
      Object.getOwnPropertyDescriptors(around),
    ) as unknown as JobContext;
  };

  const house: EmailHouse = {
    base,
    ctx,
    sandbox,
    url,
    admin,
    process,
    ses,
    smtp() {
      const { hostname, port: smtpPort } = new URL(sandbox.smtpUrl);
      return new SmtpEmail({ host: hostname, port: Number(smtpPort), secure: false, timeout: 10 });
    },
    async run(runner, around = ctx, shuttingDown = () => false) {
      let done = false;
      const running = runner.run!(jobContext(around, runner.name, shuttingDown), {}).finally(() => {
        done = true;
      });
      running.catch(() => {});
      let idle = 0;
      while (!done) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        // Locks sleep between renewals all the time; only a run that does nothing else waits for time to pass.
        if (!done && ++idle % 40 === 0) await base.clock.advance(0.5);
      }
      await running;
    },
    async callbacks(around = ctx) {
      const names: string[] = [];
      for (;;) {
        const raws = await commands.lpop(topology.key(jobKeys.hot()), 500);
        if (!raws) return names;
        const entries = raws.map((raw) => JSON.parse(raw) as { name: string; rjob?: string; kwargs: object });
        for (const runner of email.runners) {
          const items = entries.filter(({ name, rjob }) => name === runner.name && rjob === undefined);
          if (items.length === 0 || !runner.runMany) continue;
          names.push(...items.map(({ name }) => name));
          const kwargs = items.map((item) => runner.kwargs.parse(item.kwargs)) as never;
          const outcomes = await runner.runMany(jobContext(around, runner.name), kwargs);
          for (const outcome of outcomes ?? []) if (!outcome.ok) throw outcome.error;
        }
      }
    },
    code: (to) => house.mail({ email: to, template: "verifyEmailCode", parameters: { code: "123456" } }),
    async mail(mail) {
      const answer = await enqueueMails(ctx, [mail]);
      if (!answer.ok) throw new Error(answer.reason);
      return answer.uids[0]!;
    },
    listen: () => sandbox.knobs.patch({ ses: { drop_notifications: false } }),
    async news(count) {
      await eventually(async () => {
        await base.clock.advance(0.1);
        return (await house.length(keys.event())) === count;
      }, "the notifications");
    },
    async counts(family) {
      const today = calendarOf(ctx).unixDate(base.clock.now());
      const total: { events: Record<string, number>; words: Record<string, Record<string, number>> } = {
        events: {},
        words: {},
      };
      const add = (into: Record<string, number>, counts: Readonly<Record<string, string>>) => {
        for (const [name, count] of Object.entries(counts)) into[name] = (into[name] ?? 0) + Number(count);
      };
      // A test may run across midnight, so the day before counts too.
      for (const date of [today - 1, today]) {
        const { events, breakdowns } = await readDayAsIs(ctx, family, date);
        add(total.events, events);
        for (const [event, held] of Object.entries(breakdowns)) {
          if (Object.keys(held).length === 0) continue;
          total.words[event] ??= {};
          add(total.words[event], held);
        }
      }
      return total;
    },
    async length(key) {
      const name = topology.key(key);
      return (await commands.type(name)) === "zset" ? commands.zcard(name) : commands.llen(name);
    },
    outbox: () =>
      sandbox.inbox
        .all()
        .filter(({ channel }) => channel === "email")
        .map(({ to, raw }) => ({ to: String(to), raw: String(raw ?? "") })),
    query,
    async audit() {
      for (const { name, check } of email.invariants) {
        const violations = await check(ctx);
        if (violations.length > 0) throw new Error(`${name}: ${violations.join("; ")}`);
      }
    },
    async clear() {
      await base.flush();
      ctx.alerts.recorded.length = 0;
      sandbox.knobs.reset();
      // Tests that listen say so; the others are not to hear the echo of their neighbours.
      sandbox.knobs.patch({ ses: { drop_notifications: true } });
      sandbox.inbox.clear();
      for (const table of [
        "suppressed_emails",
        "email_list_optouts",
        "email_failures",
        "unsubscribed_emails_log",
        "stat_deltas",
        "message_steps",
        "users",
      ])
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
