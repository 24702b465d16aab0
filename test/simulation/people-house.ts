import { type AddressInfo, createServer } from "node:net";
import type { Domain } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import { running } from "../../src/infrastructure/sandbox/running.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import { silentLog } from "../../src/kernel/log.ts";
import type { Sql } from "../../src/kernel/sql/index.ts";
import { settings as emailRoom } from "../../src/messaging/email/settings.ts";
import { settings as linkRoom } from "../../src/messaging/links/settings.ts";
import { settings as smsRoom } from "../../src/messaging/sms/settings.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../../src/providers/channels.ts";
import { ExpoPush } from "../../src/providers/expo.ts";
import { SesEmail } from "../../src/providers/ses.ts";
import { emailSettings, twilioAccounts } from "../../src/providers/settings.ts";
import { TwilioSms } from "../../src/providers/twilio.ts";
import { SANDBOX_TWILIO, Sandbox } from "../../src/sandbox/sandbox.ts";
import { TOPIC_ARN } from "../../src/sandbox/sns.ts";
import { mortalConnection } from "../harness/chaos.ts";
import { MortalSql } from "../harness/chaos-sql.ts";
import { openRooms, type RoomsHouse } from "../harness/rooms.ts";
import { amid, finished, type Weather } from "./days.ts";

/** A dead run's lock outlives it for two minutes. */
const LOCK_OUTLIVES = 125;
const DEEPEST_STATEMENT = 8;
const MOST_REPEATS = 3;

/** Recurring jobs run when the simulation says so, and not whenever they are nudged. */
const NUDGED = domains.flatMap(({ recurring = [] }) => recurring.map(({ runner }) => runner.name as string));

/** All rooms over real engines, a server on the wire, and simulated providers for the three channels. */
export interface PeopleHouse extends RoomsHouse {
  readonly sandbox: Sandbox;
  /** Runs a job; should it die, something may happen, and it runs again two minutes later, as its schedule has it. */
  job(runner: AnyRunner, faulty: boolean, meanwhile?: () => Promise<void>): Promise<void>;
  /** Runs what is queued, perhaps twice. */
  callbacks(faulty: boolean): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function openPeopleHouse(
  start: number,
  weather: Weather,
  guests: readonly Domain[],
): Promise<PeopleHouse> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { accountSid, authToken } = SANDBOX_TWILIO;
  const snsUrl = await freePort();
  let sandboxUrl = "";
  const client = { userAgent: "carillon/test", log: silentLog };
  const house = await openRooms({
    // Those that the harness brings itself stand first in the floor plan too.
    rooms: [...domains.filter(({ name }) => !["users", "access", "operations"].includes(name)), ...guests],
    start,
    port,
    ttlGrain: 60,
    settings: [
      [twilioAccounts.twilio.accountSid, accountSid],
      [twilioAccounts.twilio.authToken, authToken],
      [smsRoom.publicUrl, url],
      [emailRoom.publicUrl, url],
      [emailRoom.maxPerSecond, 100_000],
      [linkRoom.webRoot, url],
      [emailSettings.snsTopicArns, [TOPIC_ARN]],
      [emailSettings.snsBaseUrl, `http://127.0.0.1:${snsUrl}`],
    ],
    // The simulated providers are opened after the house whose clock they share.
    providers: (ctx) => {
      const common = { ...client, clock: ctx.clock };
      const lazily = <T>(make: () => T) => {
        let made: T | undefined;
        return { enumerable: true, get: () => (made ??= make()) };
      };
      return Object.defineProperties(
        {},
        {
          push: lazily(() => new PushChannel(ctx, [new ExpoPush({ ...common, baseUrl: sandboxUrl, timeout: 20 })])),
          sms: lazily(
            () =>
              new SmsChannel(ctx, [
                new TwilioSms({
                  ...common,
                  baseUrl: sandboxUrl,
                  accountSid,
                  authToken,
                  messagingServiceSid: `MG${"0".repeat(32)}`,
                  timeout: 20,
                }),
              ]),
          ),
          email: lazily(
            () =>
              new EmailChannel(ctx, [
                new SesEmail({
                  ...common,
                  endpoint: sandboxUrl,
                  region: "us-east-1",
                  credentials: { accessKeyId: "sandbox", secretAccessKey: "sandbox" },
                  timeout: 10,
                }),
              ]),
          ),
        },
      );
    },
  });
  const sandbox = await Sandbox.start({
    clock: house.base.clock,
    log: silentLog,
    port: snsUrl,
    publicUrl: url,
    subscribing: "at first mail",
    keep: 20_000,
  });
  sandboxUrl = sandbox.url;
  running.set(house.ctx.config, sandbox);

  /** The house as a process has it whose connection to the database ends at some statement. */
  const dyingInSql = (): RoomsHouse["ctx"] => {
    const dieAt = 1 + weather.below(DEEPEST_STATEMENT);
    const sql: Sql = new MortalSql(house.base.sql, { dieAt, death: weather.oneOf(["before", "after"]) });
    return Object.defineProperties({}, {
      ...Object.getOwnPropertyDescriptors(house.ctx),
      sql: { value: sql, enumerable: true },
    } as PropertyDescriptorMap) as RoomsHouse["ctx"];
  };
  const job: PeopleHouse["job"] = async (runner, faulty, meanwhile) => {
    for (let time = 0; ; time++) {
      const trouble = await amid(house.base, weather, faulty && time < MOST_REPEATS, {
        well: () => house.run(runner),
        dying: (redis) => house.run(runner, house.process({ redis })),
        withoutDatabase: () => house.run(runner, dyingInSql()),
      });
      if (trouble === "none") return;
      await meanwhile?.();
      await house.base.clock.advance(LOCK_OUTLIVES);
    }
  };
  /** Taking jobs off the queue is the harness's part, so only those who run them have troubles. */
  const callbacks: PeopleHouse["callbacks"] = async (faulty) => {
    for (let time = 0; faulty && time < MOST_REPEATS && weather.strikes(); time++) {
      const dies = weather.strikes(0.5);
      const plan = { dieAt: 1 + weather.below(DEEPEST_STATEMENT), death: weather.oneOf(["before", "after"] as const) };
      const redis = dies ? await mortalConnection(house.base.server, plan) : undefined;
      const work = house.work(redis ? house.process({ redis }) : dyingInSql(), NUDGED);
      await finished(house.base, work, { mayFail: true });
      redis?.commands.disconnect();
      weather.struck[dies ? "death" : "database"] += 1;
    }
    await finished(house.base, house.work(house.ctx, NUDGED), { mayFail: false });
  };

  return {
    ...house,
    sandbox,
    job,
    callbacks,
    async close() {
      await sandbox.close();
      await house.close();
    },
  };
}
