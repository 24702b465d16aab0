import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { calendarOf, readDayAsIs } from "../../mechanisms/dated-counters/index.ts";
import { messageLogKeys, notesSettled } from "../../mechanisms/message-log/index.ts";
import { listQuarantined, requeueQuarantined } from "../../mechanisms/quarantine/index.ts";
import { type EmailContext, type EmailHouse, openEmail, overheard, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { attemptsFor } from "./service.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const CODE = "123456";
const PERSON = "ada@example.com";

let house: EmailHouse;
let taker: Taker;
let around: EmailContext;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear();
  taker = new Taker();
  around = house.process({ provider: taker });
});

/** What was noted about a mail, oldest first: step, provider, detail. */
async function stepsOf(uid: string): Promise<readonly (readonly unknown[])[]> {
  await Promise.all([notesSettled(house.ctx), notesSettled(around)]);
  const groups = await house.ctx.redis.commands.lrange(messageLogKeys.buffer(), 0, -1);
  return groups
    .flatMap((group) => JSON.parse(group) as [string, string, number, string, string | null, string | null][])
    .filter(([channel, whose]) => channel === "email" && whose === uid)
    .toSorted((one, other) => one[2] - other[2])
    .map(([, , , step, provider, detail]) => [step, provider, detail]);
}
const hear = (message_id: string, notification: object, age = 0) =>
  house.ctx.redis.commands.rpush(
    keys.event(),
    JSON.stringify({ message_id, notification, received_at: house.base.clock.now() - age }),
  );

test("the story of a mail says what happened to it, when, and who carried it", async () => {
  taker.fails = true;
  const uid = await house.mail(sample(PERSON));
  await house.base.clock.advance(1);
  await house.run(send, around);
  await house.base.clock.advance(1);
  await house.callbacks(around);
  await house.base.clock.advance(16);
  taker.fails = false;
  await house.run(send, around);
  await house.base.clock.advance(1);
  const id = `m-${uid}-1`;
  await hear(id, { type: "Delivery" });
  await house.run(receiptReconciliation, around);
  expect(await stepsOf(uid)).toEqual([
    ["queued", null, "sample"],
    ["failed_transiently", "taker", "ses:500"],
    ["retried", null, "try 1"],
    ["accepted", "taker", id],
    ["delivered", null, null],
  ]);
});

test("bounces, complaints, missing receipts and mails that were given up are told in the story too", async () => {
  const [bounced, complained, silent] = [
    await house.mail(sample("a@example.com")),
    await house.mail(sample("b@example.com")),
    await house.mail(sample("c@example.com")),
  ];
  await house.run(send, around);
  const ids = Object.fromEntries(taker.taken.map((uid, at) => [uid, `m-${uid}-${at + 1}`]));
  const reason = { primary: "Permanent", secondary: "NoEmail" };
  await hear(ids[bounced]!, { type: "Bounce", reason });
  await hear(ids[complained]!, { type: "Complaint", feedback_type: "abuse" });
  await house.run(receiptReconciliation, around);
  await house.base.clock.advance(86_401);
  await house.run(staleReceiptDetection, around);
  expect((await stepsOf(bounced)).at(-1)).toEqual(["bounced", null, "Permanent/NoEmail"]);
  expect((await stepsOf(complained)).at(-1)).toEqual(["complained", null, "abuse"]);
  expect((await stepsOf(silent)).at(-1)).toEqual(["timed_out", null, null]);
  taker.fails = true;
  const late = await house.mail(sample("d@example.com"));
  await house.base.clock.advance(43_201);
  await house.run(send, around);
  await house.callbacks(around);
  expect((await stepsOf(late)).at(-1)).toEqual(["abandoned", null, "try 1"]);
  expect((await house.counts(emailSendStats)).events).toMatchObject({ failed_transiently: 1, abandoned: 1 });
});

test("a sign-in code is shown in no answer, no log, no alert and no story", async () => {
  const { ctx: telling, said: logged } = overheard(around);
  taker.fails = true;
  await house.code(PERSON);
  await house.run(send, telling);
  await house.callbacks(telling);
  taker.fails = false;
  await house.base.clock.advance(16);
  await house.run(send, telling);
  const raw = JSON.stringify(
    attemptsFor(house.ctx, [{ email: PERSON, template: "verifyEmailCode", parameters: { code: CODE } }])[0],
  );
  await house.ctx.redis.commands.rpush(keys.toSend(), raw.slice(0, -20), raw.replace('"retry":0', '"retry":77'));
  await house.run(send, telling);
  await notesSettled(around);
  expect(await listQuarantined(house.ctx, keys.toSend())).toHaveLength(2);
  const ask = async (path: string) => {
    const answer = await fetch(`${house.url}/api/1/admin/${path}`, {
      headers: { authorization: `Bearer ${house.admin}` },
    });
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const shown = [
    await ask("email/receipt_pending_info"),
    await ask("email/send_queue_info"),
    await ask(`quarantine/${encodeURIComponent(keys.toSend())}`),
  ];
  expect(shown[0]).toContain("[redacted]");
  const story = await house.ctx.redis.commands.lrange(messageLogKeys.buffer(), 0, -1);
  expect(logged.length).toBeGreaterThan(0);
  for (const text of [...shown, ...story, JSON.stringify(logged), JSON.stringify(around.alerts.recorded)])
    expect(text).not.toContain(CODE);
});

test("an entry that was set aside is sent after somebody corrected it", async () => {
  const raw = JSON.stringify(attemptsFor(house.ctx, [sample(PERSON)])[0]);
  await house.ctx.redis.commands.rpush(keys.toSend(), raw.slice(0, -1));
  await house.run(send, around);
  const [aside] = await listQuarantined(house.ctx, keys.toSend());
  await requeueQuarantined(house.ctx, house.ctx.catalogue, keys.toSend(), aside!.id, { corrected: raw });
  await house.run(send, around);
  expect(taker.taken).toHaveLength(1);
  expect(await listQuarantined(house.ctx, keys.toSend())).toEqual([]);
});

test("what happens around midnight counts on the day of queueing, and what comes too late on the oldest open day", async () => {
  const calendar = calendarOf(house.ctx);
  const countsOn = async (family: typeof emailSendStats | typeof emailEventStats, date: number) =>
    (await readDayAsIs(house.ctx, family, date)).events;
  const { clock } = house.base;
  const today = calendar.unixDate(clock.now());
  await clock.advance(calendar.startOf(today + 1) - 30 - clock.now());
  const first = await house.mail(sample(PERSON));
  await clock.advance(50);
  await house.run(send, around);
  await hear(`m-${first}-1`, { type: "Delivery" });
  await house.run(receiptReconciliation, around);
  expect(await countsOn(emailSendStats, today)).toEqual({ queued: "1", attempted: "1", templated: "1", accepted: "1" });
  expect(await countsOn(emailEventStats, today)).toEqual({ attempted: "1", succeeded: "1" });

  const day = today + 1;
  await clock.advance(calendar.startOf(day) + 23 * 3_600 - clock.now());
  const second = await house.mail(sample(PERSON));
  await clock.advance(3 * 3_600);
  await house.run(send, around);
  const before = await countsOn(emailEventStats, day);
  // A day stays open for ten minutes after the midnight that closes it.
  await clock.advance(calendar.startOf(day + 2) + 3_600 - clock.now());
  await hear(`m-${second}-2`, { type: "Delivery" });
  await house.run(receiptReconciliation, around);
  expect(await countsOn(emailEventStats, day)).toEqual(before);
  expect(await countsOn(emailEventStats, day + 1)).toEqual({ attempted: "1", succeeded: "1" });
});
