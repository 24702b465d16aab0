import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { type EmailHouse, openEmail, sample } from "./email.fixture.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailSendStats } from "./stats.ts";

const at = (name: string) => `${name}@simulator.amazonses.com`;

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const suppressed = () => house.query("select email_address, reason from suppressed_emails order by 1");
/** News of a mail that nobody awaits. */
const hear = async (notification: object) => {
  const news = { message_id: "gone", notification, received_at: house.base.clock.now() - 10 };
  await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(news));
  await house.run(receiptReconciliation);
};
const complaint = { type: "Complaint", feedback_type: "abuse" };
const permanent = { type: "Bounce", reason: { primary: "Permanent", secondary: "General" } };

test("a mailbox of which the mail server says that it does not exist is suppressed; one that it refuses for a policy is not", async () => {
  const smtp = house.smtp();
  const around = house.process({ provider: smtp });
  for (const name of ["bounce", "suppressionlist"]) await house.mail(sample(at(name)));
  await house.run(send, around);
  expect(await suppressed()).toEqual([{ email_address: at("bounce"), reason: "Bounce" }]);
  expect(await house.query("select failure_extra from email_failures")).toEqual([
    { failure_extra: "Permanent/NoEmail" },
  ]);
  for (const name of ["bounce", "suppressionlist"]) await house.mail(sample(at(name)));
  await house.run(send, around);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({
    "ses:SMTP550": 3,
    "template:Suppressed": 1,
  });
  await smtp.close();
});

test("a mailbox that does not exist and cannot be suppressed now is told of, and its mail has failed all the same", async () => {
  const smtp = house.smtp();
  const sql = new MortalSql(house.base.sql);
  // Who is suppressed can still be read; nothing can be written.
  sql.pass = (statement, run) => (/^\s*with/.test(statement) ? run() : Promise.reject(new Error("SQL is down")));
  const around = house.process({ provider: smtp, sql });
  await house.mail(sample(at("bounce")));
  await house.run(send, around);
  expect(await suppressed()).toEqual([]);
  expect(around.alerts.recorded).toMatchObject([
    { level: "error", text: expect.stringContaining("could not be suppressed") },
  ]);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({ "ses:SMTP550": 1 });
  await smtp.close();
});

test("whom news of a forgotten mail is about is suppressed by the address alone, and nobody where it names nobody", async () => {
  await hear({ ...complaint, destination: ["ada@example.com"], complained_recipients: [] });
  await hear({ ...permanent, destination: ["ada@example.com"] });
  expect(await house.callbacks()).toEqual(Array(2).fill("runners.emails.abandoned_email_callback"));
  expect(await suppressed()).toEqual([]);
  await hear({ ...complaint, complained_recipients: ['"Lovelace, Ada" <ada@example.com>', "bea@example.com"] });
  await hear({ ...permanent, bounced_recipients: ["Cy <cy@example.com>", "nobody at all"] });
  await house.callbacks();
  expect(await suppressed()).toEqual([
    { email_address: "ada@example.com", reason: "Complaint" },
    { email_address: "bea@example.com", reason: "Complaint" },
    { email_address: "cy@example.com", reason: "Bounce" },
  ]);
});

test.each([
  ["that somebody awaited", "default_failure"],
  ["that nobody awaits", "abandoned_email_callback"],
] as const)(
  "while the database is away, a bounce of a mail %s is not lost: its job fails, and suppresses when it is run again",
  async (_, job) => {
    if (job === "default_failure") {
      house.listen();
      await house.mail(sample(at("bounce")));
      await house.run(send);
      await house.news(1);
      await house.run(receiptReconciliation);
    } else await hear({ ...permanent, bounced_recipients: [at("bounce")] });
    const { commands, topology } = house.ctx.redis;
    const waiting = await commands.lrange(topology.key(jobKeys.hot()), 0, -1);
    const raw = waiting.find((each) => each.includes(`"runners.emails.${job}"`))!;
    const down = house.process({ sql: new MortalSql(house.base.sql, { dieAt: 1, death: "before" }) });
    await expect(house.callbacks(down)).rejects.toThrow();
    expect(await suppressed()).toEqual([]);
    for (let times = 0; times < 2; times++) {
      await commands.rpush(topology.key(jobKeys.hot()), raw);
      await house.callbacks();
      expect(await suppressed()).toEqual([{ email_address: at("bounce"), reason: "Bounce" }]);
    }
    expect(await house.query("select 1 from email_failures")).toHaveLength(1);
  },
);
