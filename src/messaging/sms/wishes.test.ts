import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand, mortalConnection } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement, MortalSql } from "../../../test/harness/chaos-sql.ts";
import { signTwilioRequest } from "../../providers/twilio-signature.ts";
import { SANDBOX_TWILIO } from "../../sandbox/sandbox.ts";
import { INBOUND_WEBHOOK } from "./addresses.ts";
import { takeInbound } from "./inbound.ts";
import { followWishesJob, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settleWishes } from "./scripts.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsSendStats } from "./stats.ts";

const PERSON = "+14155550132";
const OTHER = "+14155550133";

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

function say(words: string, ctx: SmsContext = house.ctx, from = PERSON) {
  const fields = { From: from, To: "+14155550100", Body: words };
  const signed = { publicUrl: house.url, path: INBOUND_WEBHOOK, fields: Object.entries(fields) };
  return takeInbound(ctx, {
    path: INBOUND_WEBHOOK,
    body: Buffer.from(new URLSearchParams(fields).toString()),
    headers: {
      "x-twilio-signature": signTwilioRequest(SANDBOX_TWILIO.authToken, signed),
      "content-type": "application/x-www-form-urlencoded",
    },
  });
}

/** Another process with a database of its own. */
const withSql = (sql: MortalSql) => Object.defineProperty(house.process(), "sql", { value: sql }) as SmsContext;
/** The house while its database is away. */
const withoutSql = () => withSql(new MortalSql(house.base.sql, { dieAt: 1 }));

const suppressed = async () =>
  (await house.query<{ phone_number: string }>("select phone_number from suppressed_phone_numbers order by 1")).map(
    ({ phone_number }) => phone_number,
  );

test("a STOP that comes while SQL is down is kept, honoured at once, and followed when SQL is back", async () => {
  await house.text(PERSON);
  await house.text(OTHER);
  expect(await say("Stop", withoutSql())).toMatchObject({
    status: 200,
    body: expect.stringContaining("no more texts"),
  });
  await house.run(send);
  expect(house.outbox().map(({ to }) => to)).toEqual([OTHER]);
  expect((await house.counts(smsSendStats)).words.failed_due_to_application_error_other).toEqual({ "21610": 1 });
  expect(await suppressed()).toEqual([]);
  await expect(house.run(followWishesJob, withoutSql())).rejects.toThrow();
  await house.run(followWishesJob);
  expect(await suppressed()).toEqual([PERSON]);
  expect(await house.ctx.redis.commands.exists(keys.wishes())).toBe(0);
});

test("a STOP that comes while a long batch is being sent is heard within seconds", async () => {
  for (const number of [OTHER, "+14155550134", PERSON]) await house.text(number);
  const sent: string[] = [];
  const create = async ({ to }: { to: string }) => {
    sent.push(to);
    if (to === OTHER) await say("STOP");
    await house.base.clock.advance(3);
    const resource = {
      sid: `SM${to.slice(1)}`,
      status: "sent",
      errorCode: null,
      errorMessage: null,
      dateUpdated: null,
    };
    return { ok: true, state: "succeeded", resource, provider: "here" };
  };
  const ctx = house.process({ config: [[settings.window as never, 1]] });
  await house.run(send, Object.assign(ctx, { providers: { sms: { create } } }) as unknown as SmsContext);
  expect(sent).toEqual([OTHER, "+14155550134"]);
  expect((await house.counts(smsSendStats)).words.failed_due_to_application_error_other).toEqual({ "21610": 1 });
});

test("while SQL goes away in the middle of a batch nothing more is sent, and the rest waits in order", async () => {
  const uids: string[] = [];
  for (const number of [OTHER, "+14155550134", PERSON]) uids.push(await house.text(number));
  const ctx = house.process({ config: [[settings.window as never, 1]] });
  const create = async () => {
    await house.base.clock.advance(6);
    const resource = { sid: "SM", status: "sent", errorCode: null, errorMessage: null, dateUpdated: null };
    return { ok: true, state: "succeeded", resource, provider: "here" };
  };
  const sql = new MortalSql(house.base.sql, { dieAt: 2 });
  Object.defineProperty(ctx, "sql", { value: sql });
  Object.assign(ctx, { providers: { sms: { create } } });
  await house.run(send, ctx);
  const waiting = await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).uid)).toEqual(uids.slice(1));
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
});

test("what a person says last counts, however long SQL was down", async () => {
  await say("STOP", withoutSql());
  await say("start");
  await say("stop", withoutSql(), OTHER);
  await house.run(followWishesJob);
  expect(await suppressed()).toEqual([OTHER]);
  expect(await house.ctx.redis.commands.exists(keys.wishes())).toBe(0);
});

test("a wish that cannot be kept is not answered as if it were", async () => {
  const redis = await mortalConnection(house.base.server, { dieAt: 1, death: "before" });
  expect(await say("STOP", house.process({ redis }))).toMatchObject({
    status: 503,
    body: expect.stringContaining("<Message>"),
  });
  redis.commands.disconnect();
  await house.run(followWishesJob);
  expect(await suppressed()).toEqual([]);
});

test("whoever takes a wish may die at any command: what was answered is followed, and what was not can be said again", async () => {
  let answered: number | undefined;
  await dieAtEveryCommand(house.base.server, {
    prepare: () => house.clear(),
    life: async (redis) => {
      ({ status: answered } = await say("STOP", house.process({ redis })));
    },
    afterlife: async () => {
      if (answered !== 200) expect(await say("STOP")).toMatchObject({ status: 200 });
      await house.run(followWishesJob);
      expect(await suppressed()).toEqual([PERSON]);
    },
  });
});

test("a STOP that is followed while the sender asks who may be texted is not missed between Redis and SQL", async () => {
  await house.text(PERSON);
  await say("STOP");
  const ctx = house.process();
  const { commands } = ctx.redis;
  const following = new Proxy(commands, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== "hmgetBuffer") return typeof value === "function" ? value.bind(target) : value;
      return async (...args: [string, ...string[]]) => {
        await house.run(followWishesJob);
        return target.hmgetBuffer(...args);
      };
    },
  });
  const redis = Object.create(ctx.redis, {
    commands: { value: following },
    topology: { value: ctx.redis.topology },
    run: { value: ctx.redis.run.bind(ctx.redis) },
  });
  await house.run(send, Object.defineProperty(ctx, "redis", { value: redis }) as SmsContext);
  expect([house.outbox(), await suppressed()]).toEqual([[], [PERSON]]);
});

test("a wish that is replaced while it is followed stays, and one that cannot be read counts as STOP", async () => {
  const { commands } = house.ctx.redis;
  await commands.hset(keys.wishes(), PERSON, "newer");
  expect(await house.ctx.redis.run(settleWishes, [keys.wishes()], [PERSON, "older"])).toBe(0);
  expect(await commands.hget(keys.wishes(), PERSON)).toBe("newer");
  await house.run(followWishesJob);
  expect(await suppressed()).toEqual([PERSON]);
});

test("following held wishes may die at any command: each is followed, and none is left", async () => {
  const plan = {
    prepare: async () => {
      await house.clear();
      await say("STOP");
      await say("START", house.ctx, OTHER);
    },
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.run(followWishesJob);
      expect(await suppressed()).toEqual([PERSON]);
      expect(await house.ctx.redis.commands.exists(keys.wishes())).toBe(0);
    },
  };
  await dieAtEveryCommand(house.base.server, {
    ...plan,
    life: (redis) => house.run(followWishesJob, house.process({ redis })),
  });
  await dieAtEveryStatement(house.base.sql, {
    ...plan,
    life: (sql) => house.run(followWishesJob, withSql(sql)),
  });
}, 60_000);
