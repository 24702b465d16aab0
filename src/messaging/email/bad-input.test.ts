import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { loadConfig } from "../../kernel/config.ts";
import { listQuarantined } from "../../mechanisms/quarantine/index.ts";
import { emailSettings } from "../../providers/settings.ts";
import { settings as templateSettings } from "../email_templates/settings.ts";
import { readFailure } from "./callbacks.ts";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { LONGEST_ENTRY } from "./entries.ts";
import { defaultFailure, receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { attemptsFor, enqueueMails, errors, type NewMail } from "./service.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const PERSON = "ada@example.com";
const SECRET = "493027";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** The entry of a mail, with some of it changed. */
function entryWith(changes: object, mail: NewMail = sample(PERSON)): string {
  return JSON.stringify({ ...attemptsFor(house.ctx, [mail])[0], ...changes });
}
const push = (raw: string | Buffer) => house.ctx.redis.commands.rpush(keys.toSend(), raw);
const failures = async () =>
  (await house.ctx.redis.commands.lrange("jobs:hot", 0, -1))
    .map((raw) => JSON.parse(raw) as { name: string; kwargs: { data_raw: string } })
    .filter(({ name }) => name === defaultFailure.name)
    .map(({ kwargs }) => readFailure(kwargs.data_raw));
const padded = (raw: string, bytes: number) => {
  const entry = JSON.parse(raw);
  entry.template_parameters = { name: "Ada", message: "x" };
  entry.padding = "";
  entry.padding = "p".repeat(bytes - JSON.stringify(entry).length);
  return JSON.stringify(entry);
};

describe("an entry that is no mail is set aside alone, without being read out, and its neighbours are sent", () => {
  test.each<[string, () => string | Buffer]>([
    ["text", () => `{"code":"${SECRET}"`],
    ["bytes that are no text", () => Buffer.from([0xff, 0xfe, 0x7b])],
    ["more than 256 KiB", () => padded(entryWith({}), LONGEST_ENTRY + 1)],
    ["a time that no calendar has", () => entryWith({ initially_queued_at: 1e300, last_queued_at: 1e300 })],
    ["times that contradict each other", () => entryWith({ last_queued_at: 1 })],
    ["more tries than there are", () => entryWith({ retry: 5, last_queued_at: house.base.clock.now() + 1 })],
    ["an address that is none", () => entryWith({ email: "nobody" })],
    ["a subject of two lines", () => entryWith({ subject: "a\r\nBcc: b@example.com" })],
    ["a uid that fits no header", () => entryWith({ uid: "a b" })],
    ["a callback with a story already", () => entryWith({ failure_job: { name: "x", kwargs: { data_raw: SECRET } } })],
  ])("%s", async (_, raw) => {
    await house.mail(sample("a@example.com"));
    await push(raw());
    await house.mail(sample("b@example.com"));
    await house.run(send);
    expect(new Set(house.outbox().map(({ to }) => to))).toEqual(new Set(["a@example.com", "b@example.com"]));
    expect(await listQuarantined(house.ctx, keys.toSend())).toHaveLength(1);
    expect(JSON.stringify(house.ctx.alerts.recorded)).not.toContain(SECRET);
    expect(house.ctx.alerts.identifiers()).toContain("quarantine:email:to_send");
    expect((await house.counts(emailSendStats)).events).toMatchObject({ attempted: 2, accepted: 2 });
    await house.audit();
  });
});

describe("a mail that cannot be sent is refused before anything is queued or counted", () => {
  const long = "x".repeat(251);
  test.each<[string, object, number]>([
    ["an address without @", { email: "nobody" }, 422],
    ["an address with another script before the @", { email: "ü@example.com" }, 422],
    ["an address with two dots in a row", { email: "a..b@example.com" }, 422],
    ["an address of 255 characters", { email: `${"a".repeat(60)}@${"b".repeat(60)}.${"c".repeat(130)}.com` }, 422],
    ["an address with a line break", { email: "a@example.com\r\nBcc: b@example.com" }, 422],
    ["a subject of two lines", { subject: "a\r\nBcc: b@example.com" }, 422],
    ["a subject with a control character", { subject: "a\u0007b" }, 422],
    ["half a character in the subject", { subject: "a\ud800b" }, 422],
    ["an empty subject", { subject: "" }, 422],
    ["a subject of 251 characters", { subject: long }, 422],
    ["a uid that fits no header", { uid: "a b" }, 422],
    ["a template that does not exist", { template: "none" }, 404],
    ["parameters that are missing", { parameters: {} }, 422],
    ["parameters that nobody knows", { parameters: { name: "Ada", message: "x", nmae: "y" } }, 422],
    ["a job that does not exist", { failureJob: { name: "runners.none", kwargs: {} } }, 422],
    [
      "more than 256 KiB",
      { successJob: { name: "runners.emails.default_success", kwargs: { x: "y".repeat(LONGEST_ENTRY) } } },
      422,
    ],
  ])("%s", async (_, changes, status) => {
    const asked = enqueueMails(house.ctx, [sample("bob@example.com"), { ...sample(PERSON), ...changes }]);
    await expect(asked).rejects.toMatchObject({ status });
    expect(await house.ctx.redis.commands.keys("*")).toEqual([]);
  });

  test("two mails with one uid", async () => {
    const mail = { ...sample(PERSON), uid: "crl_em_twice" };
    await expect(enqueueMails(house.ctx, [mail, mail])).rejects.toSatisfy(errors.invalid_email.matches);
    expect(await house.ctx.redis.commands.keys("*")).toEqual([]);
  });
});

test("a template that was removed, and parameters that it no longer takes, fail their mails for good", async () => {
  await push(entryWith({ template: "gone" }));
  await push(entryWith({ template_parameters: { name: 5 } }));
  await house.run(send);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({
    "template:404": 1,
    "template:422": 1,
  });
  expect((await failures()).map(({ info }) => [info.step, info.error_identifier, info.retryable])).toEqual([
    ["template", "TemplateNotFound", false],
    ["template", "TemplateUnprocessable", false],
  ]);
  expect(house.outbox()).toEqual([]);
});

test("mails to a list need a postal address as soon as they reach real people", async () => {
  const reminder: NewMail = {
    email: PERSON,
    template: "dailyReminder",
    parameters: { name: "Ada", message: "Breathe", url: "https://example.com/" },
  };
  const raw = entryWith({}, reminder);
  const real = house.process({ config: [[emailSettings.provider, ["ses"]]] });
  await expect(enqueueMails(real, [reminder])).rejects.toThrow("CARILLON_EMAIL_POSTAL_ADDRESS");
  await push(raw);
  await house.run(send, real);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({ "template:400": 1 });
  expect((await failures())[0]!.info.error_identifier).toBe("TemplateClientError");
  const addressed = house.process({
    config: [
      [emailSettings.provider, ["ses"]],
      [templateSettings.postalAddress, "Example Ltd, 1 High Street, London"],
    ],
  });
  await push(raw);
  await house.run(send, addressed);
  expect(house.outbox()).toHaveLength(1);
});

test("a mail of the largest size keeps its size from try to try, and one that would outgrow it is given up", async () => {
  const taker = new Taker();
  taker.fails = true;
  const around = house.process({ provider: taker });
  const now = Math.floor(house.base.clock.now());
  await push(padded(entryWith({ initially_queued_at: now, last_queued_at: now }), LONGEST_ENTRY));
  await house.base.clock.advance(0.123456);
  await house.run(send, around);
  expect(await house.callbacks()).toEqual([defaultFailure.name]);
  const { events } = await house.counts(emailSendStats);
  expect(events).toMatchObject({ attempted: 1, failed_transiently: 1, abandoned: 1 });
  expect(await house.length(keys.retrying())).toBe(0);
  await house.mail({
    ...sample(PERSON),
    successJob: { name: "runners.emails.default_success", kwargs: { x: "y".repeat(LONGEST_ENTRY - 700) } },
  });
  await house.run(send, around);
  await house.callbacks();
  expect(await house.length(keys.retrying())).toBe(1);
  await house.base.clock.advance(16);
  taker.fails = false;
  await house.run(send, around);
  expect(taker.taken).toHaveLength(1);
  await house.audit();
});

test("an outcome that cannot be written sets its mail aside, and those sent with it are settled", async () => {
  // Numbers that are read as a few characters and written as many: the story outgrows its limit.
  const numbers = `[${Array(51_000).fill("1e20").join(",")}]`;
  const raw = entryWith({ failure_job: { name: defaultFailure.name, kwargs: {} } });
  const grown = raw.replace(
    '"failure_job":{"name":"runners.emails.default_failure","kwargs":{}}',
    `"failure_job":{"name":"runners.emails.default_failure","kwargs":{"x":${numbers}}}`,
  );
  expect(grown.length).toBeLessThan(LONGEST_ENTRY);
  const taker = new Taker();
  taker.fails = true;
  await push(grown);
  await push(entryWith({}, sample("bob@example.com")));
  await house.run(send, house.process({ provider: taker }));
  expect(await listQuarantined(house.ctx, keys.toSend())).toMatchObject([
    { reason: expect.stringContaining("outcome") },
  ]);
  expect((await failures()).map(({ email: { email: address } }) => address)).toEqual(["bob@example.com"]);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
});

test("what nobody can read among mails that await a receipt is set aside, and the others are given up", async () => {
  const { commands } = house.ctx.redis;
  await house.mail(sample(PERSON));
  await house.run(send);
  const [id] = await commands.zrange(keys.pending(), 0, "0");
  const hash = await commands.hgetall(`email:receipt_pending:${id}`);
  const copies = { absurd: { send_accepted_at: "1e300" }, huge: { subject: "s".repeat(LONGEST_ENTRY * 2) } };
  for (const [name, changes] of Object.entries(copies)) {
    await commands.hset(`email:receipt_pending:${name}`, { ...hash, message_id: name, ...changes });
    await commands.zadd(keys.pending(), 1, name);
  }
  await house.base.clock.advance(86_500);
  await house.run(staleReceiptDetection);
  expect(await house.length(keys.pending())).toBe(0);
  expect(await commands.hget(keys.staleReport(), "abandoned")).toBe("1");
  expect(await listQuarantined(house.ctx, keys.pending())).toHaveLength(2);
});

test("news that makes no sense is set aside alone, and news from a distant future is not waited for", async () => {
  const now = house.base.clock.now();
  const about = (changes: object) =>
    JSON.stringify({ message_id: "m", notification: { type: "Delivery" }, received_at: now, ...changes });
  const bad = [
    "{}",
    about({ received_at: 1e300 }),
    about({ message_id: "x".repeat(600) }),
    about({ notification: {} }),
  ];
  await house.ctx.redis.commands.rpush(keys.event(), ...bad, about({ received_at: now + 9_999_999 }));
  await house.run(receiptReconciliation);
  expect(await house.ctx.redis.commands.llen("quarantine:email:event")).toBe(bad.length);
  expect((await house.counts(emailEventStats)).events).toEqual({ attempted: 1, succeeded: 1 });
  expect(await house.length(keys.early())).toBe(0);
});

test("scripts that Redis forgot are loaded again", async () => {
  await house.ctx.redis.commands.script("FLUSH");
  await house.mail(sample(PERSON));
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
});

test("a story that nobody can read fails its callback with a reason", async () => {
  const outcomes = await defaultFailure.runMany!(house.ctx as never, [{ data_raw: "%%" }, { data_raw: "e30=" }]);
  for (const outcome of outcomes!) expect(outcome).toMatchObject({ ok: false, error: { code: "bad_data_raw" } });
});

test("a clock that is ahead of ours neither ages a mail nor stops it", async () => {
  const ahead = house.base.clock.now() + 120;
  await push(entryWith({ initially_queued_at: ahead, last_queued_at: ahead }));
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
  expect((await house.counts(emailSendStats)).events).toMatchObject({ attempted: 1, accepted: 1 });
});

test("the number of retry delays is the number of further tries", async () => {
  const taker = new Taker();
  taker.fails = true;
  const twice = house.process({ provider: taker, config: [[settings.retryDelays, [0, 5]]] });
  await house.mail(sample(PERSON));
  for (let round = 0; round < 4; round++) {
    await house.run(send, twice);
    await house.callbacks(twice);
    await house.base.clock.advance(6);
  }
  const { events } = await house.counts(emailSendStats);
  expect(events).toMatchObject({ attempted: 3, failed_transiently: 3, retried: 2, abandoned: 1 });
});

describe("settings that would spoil mails stop the start with what to do", () => {
  const start = (environment: Record<string, string>) => () =>
    loadConfig(Object.values(settings) as never, { environment });
  test.each([
    ["CARILLON_EMAIL_PUBLIC_URL", "http://example.com", "https://"],
    ["CARILLON_EMAIL_PUBLIC_URL", "https://example.com/?a=b", "https://"],
    ["CARILLON_EMAIL_PUBLIC_URL", "example.com", "https://"],
    ["CARILLON_EMAIL_UNSUBSCRIBE_MAILTO", "leave@example.com", "mailto:leave@example.com"],
    ["CARILLON_EMAIL_UNSUBSCRIBE_MAILTO", "mailto:leave", "mailto:leave@example.com"],
    ["CARILLON_EMAIL_FROM", "Example", "Example <hello@example.com>"],
    ["CARILLON_EMAIL_REPLY_TO", "A <b@c@d>", "Example <hello@example.com>"],
    ["CARILLON_EMAIL_RETRY_DELAYS", "1,2,3,4,5", "at most 4"],
  ])("%s=%s", (name, value, says) => {
    expect(start({ [name]: value })).toThrow(says);
  });
});
