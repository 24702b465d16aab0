import { type AddressInfo, createServer } from "node:net";
import { migrationsOf } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import { type AnyRunner, type Context, JobQueue, RecurringSet, Worker } from "../../src/jobs/index.ts";
import { Config } from "../../src/kernel/config.ts";
import { audit, Catalogue } from "../../src/kernel/keyspace/index.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { settings as emailRoomSettings } from "../../src/messaging/email/settings.ts";
import { settings as smsRoomSettings } from "../../src/messaging/sms/settings.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../../src/providers/channels.ts";
import { emailSettings, twilioAccounts } from "../../src/providers/settings.ts";
import { sandboxClients } from "../../src/sandbox/clients.ts";
import { SANDBOX_TWILIO, Sandbox } from "../../src/sandbox/sandbox.ts";
import { TOPIC_ARN } from "../../src/sandbox/sns.ts";
import { buildServer } from "../../src/surfaces/http/index.ts";
import { MortalSql } from "../harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";

/** Seconds that pass at once. */
const STEP = 15;
/** How many round trips a running job is given before time goes on: it may be asleep. */
const PATIENCE = 80;
const ROOMS = new Set(["users", "access", "operations", "contacts", "push", "sms", "email_templates", "email"]);

/** All channels of one installation with a worker that nobody has to tell what to do, real clients, and simulated providers. */
export interface OutageHouse {
  readonly base: TestContext;
  readonly ctx: Context;
  readonly sandbox: Sandbox;
  /** The database; while `dead` is true nothing gets through to it. */
  readonly database: MortalSql;
  /** The callbacks that were called, each as often as it was: the name of the job, then the stories. */
  readonly heard: ReadonlyMap<string, readonly string[]>;
  /** What providers were answered that told us of messages. */
  readonly webhooks: readonly AnsweredWebhook[];
  /** Lets time pass, and the worker do what it finds to do. */
  pass(seconds: number): Promise<void>;
  passUntil(fact: () => boolean | Promise<boolean>, what: string, limit?: number): Promise<void>;
  /** Redis is killed and starts again with what it had written down. */
  restartRedis(): Promise<void>;
  /** What an audit of the live keyspace finds. */
  findings(): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

export interface AnsweredWebhook {
  readonly path: string;
  readonly status: number;
  /** SQL was down when it was answered. */
  readonly withoutSql: boolean;
}

export async function openOutageHouse(): Promise<OutageHouse> {
  const base = await openTestContext({ sql: true, persistence: "always" });
  await migrate(base.sql, domains.flatMap(migrationsOf));
  const rooms = domains.filter(({ name }) => ROOMS.has(name));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { clock } = base;
  const sandbox = await Sandbox.start({ clock, log: silentLog, publicUrl: url, subscribing: "at first mail" });
  const database = new MortalSql(base.sql);
  const kernel = base.process({
    sql: database,
    config: new Config([]).with(
      [accessSettings.rootSecret, "a root secret for tests, long enough"],
      [twilioAccounts.twilio.accountSid, SANDBOX_TWILIO.accountSid],
      [twilioAccounts.twilio.authToken, SANDBOX_TWILIO.authToken],
      [smsRoomSettings.publicUrl, url],
      [emailRoomSettings.publicUrl, url],
      [emailSettings.snsTopicArns, [TOPIC_ARN]],
      [emailSettings.snsBaseUrl, sandbox.url],
    ),
  });
  const heard = new Map<string, string[]>();
  const runners = rooms.flatMap((room) => room.runners ?? []).map((runner) => listeningTo(runner, heard));
  const recurring = new RecurringSet(
    rooms.flatMap((room) => room.recurring ?? []),
    "America/Los_Angeles",
  );
  const jobs = new JobQueue(kernel, { runners, recurring });
  const clients = sandboxClients(() => ({ url: sandbox.url, twilio: SANDBOX_TWILIO }), {
    clock,
    log: silentLog,
    userAgent: "carillon/test",
  });
  const providers = {
    push: new PushChannel(kernel, clients.push),
    sms: new SmsChannel(kernel, clients.sms),
    email: new EmailChannel(kernel, clients.email),
  };
  const ctx = Object.defineProperties(
    { jobs, locks: new Locks(kernel), catalogue: new Catalogue(domains), providers },
    Object.getOwnPropertyDescriptors(kernel),
  ) as unknown as Context;
  const app = await buildServer(ctx, rooms);
  const webhooks: AnsweredWebhook[] = [];
  app.server.on("request", ({ url: path = "" }, response) =>
    response.on("finish", () => webhooks.push({ path, status: response.statusCode, withoutSql: database.dead })),
  );
  await app.listen({ host: "127.0.0.1", port });
  const worker = new Worker(ctx, jobs, { version: "test", instance: "1", heartbeat: "inline" });
  await worker.start();

  const moment = async () => {
    await base.redis.commands.ping().catch(() => {});
    await new Promise(setImmediate);
  };
  const step = async () => {
    await clock.advance(STEP).catch(() => {});
    for (let turn = 0; turn < 3; turn++) await moment();
    for (let turn = 0; turn < PATIENCE && worker.active > 0; turn++) await moment();
  };
  return {
    base,
    ctx,
    sandbox,
    database,
    heard,
    webhooks,
    async pass(seconds) {
      for (let passed = 0; passed < seconds; passed += STEP) await step();
    },
    async passUntil(fact, what, limit = 7200) {
      for (let passed = 0; !(await fact()); passed += 4 * STEP) {
        if (passed > limit) throw new Error(`${what} did not come true within ${limit} virtual seconds`);
        for (let turn = 0; turn < 4; turn++) await step();
      }
    },
    async restartRedis() {
      await base.server.crashAndRestart();
      await eventually(() => base.redis.commands.ping());
      await eventually(() => ctx.redis.commands.ping());
      // Whoever makes Redis obey the clock has to be back too.
      await eventually(() => clock.advance(0.01).then(() => true));
    },
    async findings() {
      const invariants = rooms.flatMap((room) => room.invariants ?? []);
      return (await audit(ctx, new Catalogue(domains), { invariants, deep: true })).findings;
    },
    async close() {
      // A worker that stops waits for its jobs, and they may be asleep.
      let stopped = false;
      const stopping = worker.stop().finally(() => {
        stopped = true;
      });
      while (!stopped) {
        await clock.advance(1).catch(() => {});
        await moment();
      }
      await stopping;
      await sandbox.close();
      await app.close();
      await base.close();
    },
  };
}

function listeningTo(runner: AnyRunner, heard: Map<string, string[]>): AnyRunner {
  const { runMany } = runner;
  if (!runMany) return runner;
  return {
    ...runner,
    async runMany(ctx, items) {
      const outcomes = await runMany(ctx, items);
      const stories = heard.get(runner.name) ?? [];
      heard.set(runner.name, stories);
      for (const [at, item] of (items as readonly { data_raw?: string }[]).entries())
        if (item.data_raw && outcomes?.[at]?.ok !== false) stories.push(item.data_raw);
      return outcomes;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
