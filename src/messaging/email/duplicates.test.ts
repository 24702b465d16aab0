import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { EmailProvider } from "../../providers/email.ts";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const SUCCESS = "success@simulator.amazonses.com";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** Hands the mail to the simulated provider, and dies before it can write down that it was taken. */
async function dieAfterSending(): Promise<void> {
  const { email } = house.ctx.providers;
  const dying: EmailProvider = {
    name: "ses",
    hasReceipts: true,
    async send(message) {
      await email.send(message);
      throw new Error("killed");
    },
    quota: () => email.quota(),
    reset: async () => {},
    close: async () => {},
  };
  await expect(house.run(send, house.process({ provider: dying }))).rejects.toThrow("killed");
  expect(await house.length(keys.sendPurgatory())).toBe(1);
  expect(house.outbox()).toHaveLength(1);
}
const takenIds = () => house.sandbox.inbox.all().map(({ provider_id }) => String(provider_id));
const uidIn = (raw: string) => /^X-Carillon-Email-Uid: (\S+)/im.exec(raw)?.[1];

test("after a death between acceptance and writing it down, news with the mail's uid saves it from being sent twice", async () => {
  house.listen();
  const uid = await house.mail(sample(SUCCESS));
  await dieAfterSending();
  await house.news(1);
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  await house.run(send);
  expect(house.outbox().map(({ raw }) => uidIn(raw))).toEqual([uid]);
  expect((await house.counts(emailSendStats)).events).toEqual({ queued: 1, attempted: 1, templated: 1, accepted: 1 });
  expect((await house.counts(emailEventStats)).words).toEqual({ attempted: { found: 1 }, succeeded: { found: 1 } });
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  await house.audit();
});

test("after such a death without news the mail is sent once more under its uid, and ends once", async () => {
  const uid = await house.mail(sample(SUCCESS));
  await dieAfterSending();
  house.listen();
  await house.run(send);
  expect(house.ctx.alerts.identifiers()).toContain("runners.emails.send:recovering");
  expect(house.outbox().map(({ raw }) => uidIn(raw))).toEqual([uid, uid]);
  await house.news(1);
  const [second] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  const first = takenIds().find((id) => id !== second);
  const late = { message_id: first, uid, notification: { type: "Delivery" }, received_at: house.base.clock.now() - 10 };
  await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(late));
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 1, abandoned: 1 });
  expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 1, attempted: 1, accepted: 1 });
});

test("a delivery that outruns a slow answer counts as acceptance, and the answer then changes nothing", async () => {
  const taker = new Taker();
  const uid = await house.mail(sample("ada@example.com"));
  const id = `m-${uid}-1`;
  taker.meanwhile = async () => {
    const news = { message_id: id, uid, notification: { type: "Delivery" }, received_at: house.base.clock.now() };
    await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(news));
    await house.run(receiptReconciliation);
  };
  await house.run(send, house.process({ provider: taker }));
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  expect((await house.counts(emailSendStats)).events).toEqual({ queued: 1, attempted: 1, templated: 1, accepted: 1 });
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 1 });
  expect(await house.length(keys.pending())).toBe(0);
  await house.audit();
});

test("a bounce of a mail whose acceptance was lost fails it once, and suppresses its address", async () => {
  house.listen();
  await house.mail(sample("bounce@simulator.amazonses.com"));
  await dieAfterSending();
  await house.news(1);
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.emails.default_failure"]);
  expect(await house.query("select reason from suppressed_emails")).toEqual([{ reason: "Bounce" }]);
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
});
