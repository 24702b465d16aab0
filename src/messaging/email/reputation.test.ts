import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { statsOf } from "../../mechanisms/dated-counters/index.ts";
import { type EmailHouse, openEmail, sample } from "./email.fixture.ts";
import { send, watchReputation } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const DAY = 86_400;
let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const reminder = (email: string) => ({
  email,
  template: "dailyReminder",
  parameters: { name: "Ada", message: "Time to breathe", url: "https://example.com/now" },
});
async function count(accepted: number, bounced: number, complained: number, kind = "Permanent"): Promise<void> {
  const stats = statsOf(house.ctx);
  stats.incr(emailSendStats, "accepted", { extra: "dailyReminder", by: accepted });
  if (bounced > 0) stats.incr(emailEventStats, "bounced", { extra: `found:${kind}:General`, by: bounced });
  if (complained > 0) stats.incr(emailEventStats, "complaint", { extra: "abandoned:abuse", by: complained });
  await stats.store();
}
const admin = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${house.url}/api/1/admin/email/${path}`, {
    method,
    headers: { authorization: `Bearer ${house.admin}`, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  return text === "" ? {} : JSON.parse(text);
};
const sentTo = () => house.outbox().map(({ to }) => to);

test("rates below their limits, few mails and passing bounces pause nothing", async () => {
  await count(20_000, 900, 15);
  await count(0, 5_000, 0, "Transient");
  await house.run(watchReputation);
  expect(await admin("GET", "health")).toMatchObject({
    reputation: { accepted: 20_000, bounced: 900, bounce_rate: 0.045, bounce_level: "good", complaint_level: "good" },
    lists: { paused: false, since: null, reason: null, aside: 0 },
  });
  await house.clear();
  await count(999, 500, 100);
  await house.run(watchReputation);
  expect(await admin("GET", "health")).toMatchObject({
    reputation: { bounce_level: "critical", complaint_level: "critical" },
    lists: { paused: false },
  });
});

test("five percent of bounces or a tenth of a percent of complaints pause mails of lists, and codes go on", async () => {
  for (const [bounced, complained] of [
    [50, 0],
    [0, 1],
  ] as const) {
    await house.clear();
    await count(1_000, bounced, complained);
    for (let times = 0; times < 2; times++) await house.run(watchReputation);
    expect(house.ctx.alerts.recorded.map(({ identifier }) => identifier)).toEqual(["emails:lists_paused"]);
    for (const name of ["a", "b", "c"]) await house.mail(reminder(`${name}@example.com`));
    await house.mail(sample("plain@example.com"));
    await house.code("code@example.com");
    await house.run(send);
    expect(sentTo()).toEqual(["code@example.com", "plain@example.com"]);
    expect(await admin("GET", "send_queue_info")).toMatchObject({ length: 0, paused: 3 });
  }
});

test("an administrator lets lists go on with one call: what was set aside comes back in order, once", async () => {
  await count(1_000, 100, 0);
  await house.run(watchReputation);
  for (const name of ["a", "b", "c"]) await house.mail(reminder(`${name}@example.com`));
  await house.run(send);
  expect(await admin("POST", "lists/resume")).toEqual({ resumed: true });
  expect(await admin("POST", "lists/resume")).toEqual({ resumed: false });
  await house.run(watchReputation);
  await house.run(send);
  expect(sentTo()).toEqual(["a@example.com", "b@example.com", "c@example.com"]);
  expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 3, accepted: 1_003 });
  // The day after, only what came since counts.
  await house.base.clock.advance(DAY);
  await count(1_000, 10, 0);
  await house.run(watchReputation);
  expect((await admin("GET", "health")).lists.paused).toBe(false);
  await count(0, 90, 0);
  await house.run(watchReputation);
  expect((await admin("GET", "health")).lists.paused).toBe(true);
});

test("lists can be paused by hand, with a reason that others read", async () => {
  await admin("POST", "lists/pause", { reason: "wrong text in the campaign" });
  expect((await admin("GET", "health")).lists).toMatchObject({ paused: true, reason: "wrong text in the campaign" });
});

test("a mail of a list that a dying run sets aside is neither lost nor sent", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await house.clear();
      await admin("POST", "lists/pause", { reason: "test" });
      for (const name of ["a", "b"]) await house.mail(reminder(`${name}@example.com`));
    },
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife: async () => {
      await house.ctx.redis.commands.del(keys.sendLock());
      await house.run(send);
      expect([await house.length(keys.paused()), await house.length(keys.toSend()), sentTo()]).toEqual([2, 0, []]);
      await house.audit();
      await admin("POST", "lists/resume");
      expect([await house.length(keys.paused()), await house.length(keys.toSend())]).toEqual([0, 2]);
    },
  });
}, 120_000);

test("the least number of mails that a judgement needs is a setting", async () => {
  await count(100, 50, 0);
  await house.run(watchReputation, house.process({ config: [[settings.reputationMinimum, 100]] }));
  expect((await admin("GET", "health")).lists.paused).toBe(true);
});
