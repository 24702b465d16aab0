import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { notesSettled } from "../../mechanisms/message-log/index.ts";
import type { EmailProvider } from "../../providers/email.ts";
import { carriedBy } from "../messages/carriers.ts";
import { runners as messageRunners } from "../messages/jobs.ts";
import { traceMessage } from "../messages/service.ts";
import { type EmailContext, type EmailHouse, openEmail, sample } from "./email.fixture.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const SUCCESS = "success@simulator.amazonses.com";
const storeLog = messageRunners.find(({ name }) => name === "runners.messages.store_log")!;

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** Where the steps of a mail end up: its story, and who carried how many today. */
async function told(uid: string, around: EmailContext) {
  await Promise.all([notesSettled(house.ctx), notesSettled(around)]);
  await house.run(storeLog);
  const { steps } = (await traceMessage(house.ctx, uid))!;
  const story = steps.map(({ step, provider }) => [step, provider]);
  return { story, carried: (await carriedBy(house.ctx, 1)).map(({ provider, steps }) => [provider, steps]) };
}

test("a mail that the preferred provider cannot be reached for is carried by the next, and everybody knows by whom", async () => {
  const smtp = house.smtp();
  const around = house.process({ providers: [house.ses("http://127.0.0.1:1"), smtp] });
  const uid = await house.mail(sample("ada@example.com"));
  await house.run(send, around);
  expect(house.sandbox.inbox.all().map(({ provider }) => provider)).toEqual(["smtp"]);
  expect(await house.length(keys.pending())).toBe(1);
  expect(await house.length(keys.event())).toBe(1);
  await house.audit();
  await house.run(receiptReconciliation, around);
  expect(await house.callbacks(around)).toEqual(["runners.emails.default_success"]);
  expect((await house.counts(emailSendStats)).events).toEqual({ queued: 1, attempted: 1, templated: 1, accepted: 1 });
  expect((await house.counts(emailEventStats)).words).toEqual({ attempted: { found: 1 }, succeeded: { found: 1 } });
  expect(await told(uid, around)).toEqual({
    story: [
      ["queued", null],
      ["accepted", "smtp"],
      ["delivered", null],
    ],
    carried: [["smtp", { accepted: 1 }]],
  });
  await smtp.close();
});

test("a mail whose acceptance only its report tells of was carried by the provider that reports", async () => {
  const ses = house.ses();
  const dying: EmailProvider = Object.assign(Object.create(ses) as EmailProvider, {
    async send(message: Parameters<EmailProvider["send"]>[0]) {
      await ses.send(message);
      throw new Error("killed");
    },
    quota: () => ses.quota(),
  });
  const smtp = house.smtp();
  house.listen();
  const uid = await house.mail(sample(SUCCESS));
  await expect(house.run(send, house.process({ providers: [dying, smtp] }))).rejects.toThrow("killed");
  await house.news(1);
  const around = house.process({ providers: [ses, smtp] });
  await house.run(receiptReconciliation, around);
  expect(await told(uid, around)).toEqual({
    story: [
      ["queued", null],
      ["accepted", "ses"],
      ["delivered", null],
    ],
    carried: [["ses", { accepted: 1 }]],
  });
  await smtp.close();
});
