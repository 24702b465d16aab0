import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createUser } from "../../people/users/service.ts";
import { addEmails, suppressEmails } from "../contacts/service.ts";
import { adminRoutes } from "./admin-routes.ts";
import { type EmailHouse, openEmail } from "./email.fixture.ts";
import { errors } from "./errors.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { sendTest } from "./test-mail.ts";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const SAMPLE = { template: "sample", template_parameters: { name: "Ada", message: "Hello" } };
const route = adminRoutes.find(({ path }) => path.endsWith("/send_test"))!;
const person = async (...emails: string[]) => {
  await createUser(house.ctx, [], { sub: "ada" });
  await addEmails(
    house.ctx,
    emails.map((email) => ({ userSub: "ada", email, verified: true, cause: "identity" as const })),
  );
};
const ask = async (body: object = SAMPLE) => {
  const answer = await route.handle(house.ctx, { body, caller: { sub: "ada" } } as never);
  return answer as { status: number; body: { job_uid: string; progress_token: string; emails: string[] } };
};
const story = async (jobUid: string) => {
  const response = await fetch(`${house.url}/api/1/admin/email/send_test/${jobUid}`, {
    headers: { authorization: `Bearer ${house.admin}` },
  });
  return (await response.json()) as { done: boolean; outcome: string | null; steps: { message: string }[] };
};
const steps = async (jobUid: string) => (await story(jobUid)).steps.map(({ message }) => message);
/** Queues the mails of a test, as a worker would. */
const work = async (jobUid: string, emails: readonly string[]) => {
  for (const email of emails)
    await sendTest.run!(house.ctx as never, { ...SAMPLE, email, subject: "Hello", job_uid: jobUid });
};

test("an administrator sends ten test mails to their own address, and is then asked to wait", async () => {
  await person("ada@example.com");
  for (let sent = 0; sent < 10; sent++)
    expect(await ask()).toMatchObject({ status: 202, body: { emails: ["ada@example.com"] } });
  const refused = await ask().catch((error: unknown) => error);
  expect(errors.too_many_test_mails.matches(refused)).toBe(true);
});

test("whoever sends a test mail sees it queued, accepted and delivered", async () => {
  await person("success@simulator.amazonses.com");
  house.listen();
  const { job_uid, emails } = (await ask()).body;
  // As after the death of a worker, the job runs twice.
  for (let times = 0; times < 2; times++) await work(job_uid, emails);
  expect(await house.length(keys.toSend())).toBe(1);
  expect(await story(job_uid)).toMatchObject({ done: false, outcome: null });
  await house.run(send);
  await house.news(1);
  await house.run(receiptReconciliation);
  await house.callbacks();
  await house.base.clock.advance(1);
  expect(await story(job_uid)).toMatchObject({ done: true, outcome: "delivered" });
  const [address] = emails;
  expect(await steps(job_uid)).toEqual([`queued: ${address}`, `accepted: ${address}`, `delivered: ${address}`]);
});

test("a test mail to two addresses ends when both have, and has failed if one did", async () => {
  await person("bounce@simulator.amazonses.com", "ada@example.com");
  house.listen();
  const { job_uid, emails } = (await ask()).body;
  await work(job_uid, emails);
  await house.run(send);
  await house.news(2);
  await house.run(receiptReconciliation);
  await house.callbacks();
  await house.base.clock.advance(1);
  const { done, outcome } = await story(job_uid);
  expect([done, outcome]).toEqual([true, "failed"]);
  expect((await steps(job_uid)).join("\n")).toContain("failed: bounce@simulator.amazonses.com: receipt: Bounce (Perm");
});

test("a test mail goes to every verified address of its sender, whatever they switched off, and says what holds it back", async () => {
  await person("ada@example.com", "held@example.com");
  await addEmails(house.ctx, [{ userSub: "ada", email: "new@example.com", verified: false, cause: "identity" }]);
  await house.query("update user_email_addresses set receives_notifications = false where email = 'ada@example.com'");
  await suppressEmails(house.ctx, [{ email: "held@example.com", reason: "Bounce", scope: "all" }]);
  const { job_uid, emails } = (await ask()).body;
  expect(emails).toEqual(["ada@example.com", "held@example.com"]);
  await work(job_uid, emails);
  await house.run(send);
  await house.callbacks();
  expect(house.outbox().map(({ to }) => to)).toEqual(["ada@example.com"]);
  expect((await steps(job_uid)).join("\n")).toContain("failed: held@example.com: template: Suppressed");
});

test("a test mail that is tried again says so and does not end", async () => {
  await person("ada@example.com");
  house.sandbox.knobs.patch({ ses: { fail_next: 1, error: "throttle" } });
  const { job_uid, emails } = (await ask()).body;
  await work(job_uid, emails);
  await house.run(send);
  await house.callbacks();
  expect((await story(job_uid)).done).toBe(false);
  expect((await steps(job_uid)).at(-1)).toMatch(/^retrying: ada@example.com: send: SESTooManyRequestsException/);
});

test("a test mail is refused before it is queued when it does not render, or when too many mails wait", async () => {
  await person("ada@example.com");
  await expect(ask({ ...SAMPLE, template_parameters: {} })).rejects.toMatchObject({ status: 422 });
  // The link for leaving is the channel's to add.
  const reminder = { name: "Ada", message: "Breathe", url: "https://example.com/now" };
  expect(await ask({ template: "dailyReminder", template_parameters: reminder })).toMatchObject({ status: 202 });
  for (let batch = 0; batch < 11; batch++)
    await house.ctx.redis.commands.rpush(keys.toSend(), ...Array(1000).fill("x"));
  const refused = await ask().catch((error: unknown) => error);
  expect(errors.email_backpressure.matches(refused)).toBe(true);
});

test("a test mail that nobody sent is not known", async () => {
  const response = await fetch(`${house.url}/api/1/admin/email/send_test/crl_jp_${"a".repeat(22)}`, {
    headers: { authorization: `Bearer ${house.admin}` },
  });
  expect([response.status, ((await response.json()) as { type: string }).type]).toEqual([404, "unknown_test_mail"]);
});
