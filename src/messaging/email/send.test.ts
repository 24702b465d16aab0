import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { jobErrors } from "../../jobs/errors.ts";
import { listQuarantined } from "../../mechanisms/quarantine/index.ts";
import type { EmailProvider } from "../../providers/email.ts";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { acceptHandover, attemptsFor, enqueueMails, errors } from "./service.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const PERSON = "ada@example.com";
const SUCCESS = "success@simulator.amazonses.com";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const stopReason = () => house.ctx.redis.commands.hget(keys.sendReport(), "stop_reason");

test("a mail is rendered, taken, reported on over real HTTP, and ends with one success job", async () => {
  house.listen();
  await house.code(SUCCESS);
  await house.run(send);
  expect(await house.length(keys.pending())).toBe(1);
  await house.audit();
  await house.news(1);
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  for (const key of [keys.toSend(), keys.urgent(), keys.sendPurgatory(), keys.pending(), keys.event()])
    expect(await house.length(key)).toBe(0);
  const sent = await house.counts(emailSendStats);
  expect(sent.events).toEqual({ queued: 1, attempted: 1, templated: 1, accepted: 1 });
  expect(sent.words).toEqual({ accepted: { verifyEmailCode: 1 } });
  const news = await house.counts(emailEventStats);
  expect(news.events).toEqual({ attempted: 1, succeeded: 1 });
  expect(news.words).toEqual({ attempted: { found: 1 }, succeeded: { found: 1 } });
  expect(house.outbox()[0]!.raw).not.toMatch(/List-Unsubscribe/i);
  await house.audit();
});

test("a limit of mails in a second is kept, and no mail fails for it", async () => {
  await enqueueMails(
    house.ctx,
    Array.from({ length: 20 }, (_, at) => sample(`p${at}@example.com`)),
  );
  const began = house.base.clock.monotonic();
  await house.run(send, house.process({ config: [[settings.maxPerSecond, 5]] as never }));
  expect(house.base.clock.monotonic() - began).toBeGreaterThan(2.999);
  expect((await house.counts(emailSendStats)).events).toEqual({
    queued: 20,
    attempted: 20,
    templated: 20,
    accepted: 20,
  });
  expect(await stopReason()).toBe("list_exhausted");
});

/** When each of so many mails is given to a provider that has this to say of its limits. */
async function pacedBy(mails: number, quota: EmailProvider["quota"]): Promise<readonly number[]> {
  const taker = Object.assign(new Taker(), { quota });
  const times: number[] = [];
  taker.meanwhile = () => void times.push(house.base.clock.monotonic());
  await enqueueMails(
    house.ctx,
    Array.from({ length: mails }, (_, at) => sample(`p${at}@example.com`)),
  );
  await house.run(send, house.process({ provider: taker, config: [[settings.maxPerSecond, 1_000]] }));
  expect(times).toHaveLength(mails);
  return times;
}
/** The shortest time in which one mail more went out than a second allows. */
const shortest = (times: readonly number[], perSecond: number) =>
  Math.min(...times.slice(perSecond).map((at, index) => at - times[index]!));

test("a run keeps to what the provider says it takes in a second", async () => {
  house.sandbox.knobs.patch({ ses: { max_per_second: 5 } });
  const ses = house.ses();
  const times = await pacedBy(60, () => ses.quota());
  expect(shortest(times, 5)).toBeGreaterThan(0.999);
  expect((await house.counts(emailSendStats)).events).toMatchObject({ attempted: 60, accepted: 60 });
  await ses.close();
});

test.each<[string, EmailProvider["quota"]]>([
  ["does not say", async () => undefined],
  ["cannot say", () => Promise.reject(new Error("no answer"))],
])("a provider with receipts that %s what it takes gets 14 mails a second", async (_, quota) => {
  expect(shortest(await pacedBy(29, quota), 14)).toBeGreaterThan(0.999);
});

test("a throttled mail is tried again after 15 s, not before, and decided once however often its callback runs", async () => {
  house.sandbox.knobs.patch({ ses: { fail_next: 1, error: "throttle" } });
  await house.mail(sample(PERSON));
  await house.run(send);
  const waiting = await house.ctx.redis.commands.lrange("jobs:hot", 0, -1);
  const callback = waiting.find((raw) => raw.includes("default_failure"));
  await house.callbacks();
  await house.ctx.redis.commands.rpush("jobs:hot", callback!);
  expect(await house.callbacks()).toEqual(["runners.emails.default_failure"]);
  expect(await house.length(keys.retrying())).toBe(1);
  await house.audit();
  await house.base.clock.advance(10);
  await house.run(send);
  expect(house.outbox()).toHaveLength(0);
  await house.base.clock.advance(6);
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
  const { events, words } = await house.counts(emailSendStats);
  expect(events).toEqual({ queued: 1, attempted: 2, templated: 2, accepted: 1, failed_transiently: 1, retried: 1 });
  expect(words.failed_transiently).toEqual({ "ses:TooManyRequestsException": 1 });
});

test("a provider that is down costs a mail five tries, and then it is given up", async () => {
  house.sandbox.knobs.patch({ ses: { error_rate: 1, error: "503" } });
  await house.mail(sample(PERSON));
  for (const delay of [15, 60, 300, 1800, 0]) {
    await house.run(send);
    await house.callbacks();
    await house.base.clock.advance(delay);
  }
  const { events } = await house.counts(emailSendStats);
  expect(events).toEqual({ queued: 1, attempted: 5, templated: 5, failed_transiently: 5, retried: 4, abandoned: 1 });
  expect(await house.length(keys.retrying())).toBe(0);
  expect(await house.length(keys.toSend())).toBe(0);
});

test("a mail that waited for half a day is not tried again", async () => {
  house.sandbox.knobs.patch({ ses: { error_rate: 1, error: "503" } });
  await house.mail(sample(PERSON));
  await house.base.clock.advance(43_201);
  await house.run(send);
  await house.callbacks();
  expect(await house.length(keys.retrying())).toBe(0);
  expect((await house.counts(emailSendStats)).events).toMatchObject({ failed_transiently: 1, abandoned: 1 });
});

test("wrong credentials put the batch back in order, and fail no mail", async () => {
  const uids = [await house.mail(sample("a@example.com")), await house.mail(sample("b@example.com"))];
  house.sandbox.knobs.patch({ ses: { error_rate: 1, error: "credentials" } });
  const waiting = async () =>
    (await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1)).map((raw) => JSON.parse(raw).uid);
  await house.run(send);
  expect(await stopReason()).toBe("credentials");
  expect(await waiting()).toEqual(uids);
  expect((await house.counts(emailSendStats)).events).toEqual({ queued: 2 });
  expect(house.ctx.alerts.identifiers()).toContain("providers:credentials");
  house.sandbox.knobs.reset();
  await house.base.clock.advance(60);
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
});

test("a provider that refused our credentials starts afresh, once nothing is with it any more", async () => {
  const steps: string[] = [];
  const taker = Object.assign(new Taker(), {
    async send() {
      steps.push("asked");
      await house.query("select 1");
      steps.push("refused");
      const about = { identifier: "SESClientError", subidentifier: "ExpiredTokenException", extra: null } as const;
      return { ok: false, ...about, retryable: false, credentials: true } as const;
    },
    reset: async () => void steps.push("reset"),
  });
  for (const name of ["a", "b", "c"]) await house.mail(sample(`${name}@example.com`));
  await house.run(send, house.process({ provider: taker as unknown as EmailProvider }));
  expect(await stopReason()).toBe("credentials");
  expect(steps.filter((step) => step === "reset")).toEqual(["reset"]);
  expect(steps.at(-1)).toBe("reset");
});

test("that the provider stopped our account is told at once, and then every ten minutes while it lasts", async () => {
  house.sandbox.knobs.patch({ ses: { error_rate: 1, error: "SendingPausedException" } });
  const around = house.process();
  const told = () => around.alerts.recorded.filter(({ identifier }) => identifier === "emails:account_stopped");
  const sendSome = async () => {
    for (const name of ["a", "b", "c"]) await house.mail(sample(`${name}@example.com`));
    await house.run(send, around);
  };
  await sendSome();
  expect(told()).toMatchObject([{ level: "urgent" }]);
  await house.base.clock.advance(570);
  await sendSome();
  expect(told()).toHaveLength(1);
  for (const times of [2, 3]) {
    await house.base.clock.advance(600);
    await sendSome();
    expect(told()).toHaveLength(times);
  }
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({ "ses:SendingPausedException": 12 });
});

test("answers go where the settings say, and lists can be left by mail too", async () => {
  const around = house.process({
    config: [
      [settings.replyTo, "Help <help@example.com>"],
      [settings.unsubscribeMailto, "mailto:leave@example.com"],
    ],
  });
  const parameters = { name: "Ada", message: "Time to breathe", url: "https://example.com/now" };
  await house.mail({ email: PERSON, template: "dailyReminder", parameters });
  await house.run(send, around);
  await house.mail({ email: PERSON, template: "dailyReminder", parameters });
  await house.run(send);
  const [settled, plain] = house.outbox().map(({ raw }) => raw);
  expect(settled).toMatch(/^Reply-To: Help <help@example\.com>\r$/m);
  expect(settled).toMatch(/^List-Unsubscribe: <http[^>]+>, <mailto:leave@example\.com>\r$/m);
  expect(plain).not.toMatch(/^Reply-To:|mailto:/m);
});

test("a stop in the middle of a batch returns what was not sent to the head, in order", async () => {
  const mails = Array.from({ length: 40 }, (_, at) => sample(`p${at}@example.com`));
  const answer = await enqueueMails(house.ctx, mails);
  await house.run(send, house.ctx, () => house.outbox().length >= 10);
  expect(await stopReason()).toBe("signal");
  const left = (await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1)).map((raw) => JSON.parse(raw).uid);
  expect(left.length).toBeGreaterThanOrEqual(20);
  expect(left).toEqual(answer.ok && answer.uids.slice(-left.length));
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  await house.run(send);
  expect(house.outbox()).toHaveLength(40);
});

test("a sign-in code overtakes a campaign that was queued before it", async () => {
  await enqueueMails(
    house.ctx,
    Array.from({ length: 30 }, (_, at) => sample(`p${at}@example.com`)),
  );
  await house.code(PERSON);
  const slow = house.process({
    config: [
      [settings.window, 1],
      [settings.claimSize, 10],
    ],
  });
  await house.run(send, slow);
  expect(house.outbox()[0]!.to).toBe(PERSON);
  expect(house.outbox()).toHaveLength(31);
});

test("a code that waited beyond its life is not sent any more", async () => {
  await house.code(PERSON);
  await house.base.clock.advance(3_700);
  await house.run(send);
  expect(house.outbox()).toHaveLength(0);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({ "template:Expired": 1 });
});

test("an entry that is no mail is set aside, and its neighbours are sent", async () => {
  await house.mail(sample("a@example.com"));
  await house.ctx.redis.commands.rpush(keys.toSend(), "not json");
  await house.mail(sample("b@example.com"));
  await house.run(send);
  expect(
    house
      .outbox()
      .map(({ to }) => to)
      .sort(),
  ).toEqual(["a@example.com", "b@example.com"]);
  const quarantined = await listQuarantined(house.ctx, keys.toSend());
  expect(quarantined.map((entry) => "raw" in entry && entry.raw)).toEqual(["not json"]);
});

test("mail over SMTP has no receipts, and ends as delivered all the same", async () => {
  const smtp = house.smtp();
  const around = house.process({ provider: smtp });
  await house.mail(sample(PERSON));
  await house.run(send, around);
  expect(await house.length(keys.event())).toBe(1);
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 1 });
  expect(house.outbox()).toHaveLength(1);
  await smtp.close();
});

test("what could poison the queue is refused with an error, and a repeated call adds nothing", async () => {
  const refused = (mail: object) => enqueueMails(house.ctx, [{ ...sample(PERSON), ...mail }]);
  await expect(refused({ email: "nobody" })).rejects.toSatisfy(errors.invalid_email.matches);
  await expect(refused({ email: "ü@example.com" })).rejects.toSatisfy(errors.invalid_email.matches);
  await expect(refused({ subject: "a\r\nBcc: b@example.com" })).rejects.toSatisfy(errors.invalid_email.matches);
  await expect(refused({ template: "none" })).rejects.toMatchObject({ status: 404 });
  await expect(refused({ parameters: {} })).rejects.toMatchObject({ status: 422 });
  await expect(refused({ failureJob: { name: "runners.none", kwargs: {} } })).rejects.toSatisfy(
    jobErrors.unknown_job.matches,
  );
  const mails = [sample("Ada@bücher.example")];
  expect((await enqueueMails(house.ctx, mails, { callUid: "call1" })).ok).toBe(true);
  expect(await enqueueMails(house.ctx, mails, { callUid: "call1" })).toEqual({ ok: false, reason: "duplicate" });
  expect(await enqueueMails(house.ctx, mails, { maxLength: 1 })).toEqual({ ok: false, reason: "backpressure" });
  const group = { uid: "group1", attempts: attemptsFor(house.ctx, mails) };
  expect(await acceptHandover(house.ctx, group)).toBe("accepted");
  expect(await acceptHandover(house.ctx, group)).toBe("duplicate");
  const queued = await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1);
  expect(queued.map((raw) => JSON.parse(raw).email)).toEqual(Array(2).fill("Ada@xn--bcher-kva.example"));
  expect((await house.counts(emailSendStats)).events).toEqual({ queued: 2 });
});

test("without the list of suppressed addresses nothing is sent, and everything waits", async () => {
  await house.mail(sample(PERSON));
  const blind = house.process();
  Object.defineProperty(blind, "sql", {
    value: {
      tables: () => {
        throw new Error("SQL is down");
      },
    },
  });
  await house.run(send, blind);
  expect(house.outbox()).toHaveLength(0);
  expect(await house.length(keys.toSend())).toBe(1);
  expect(await stopReason()).toBe("time_exhausted");
});
