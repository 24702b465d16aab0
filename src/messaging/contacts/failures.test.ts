import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { findPostgres, startPostgres } from "../../../test/harness/postgres.ts";
import { Config } from "../../kernel/config.ts";
import { openSql } from "../../kernel/sql/index.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import { addEmails, type EmailFailure, listEmailFailures, suppressAfterFailure } from "./service.ts";
import { settings } from "./settings.ts";

let house: ContactsHouse;
let messages = 0;
beforeAll(async () => {
  house = await openContacts();
});
beforeEach(() => house.clear());
afterAll(() => house.close());

const DAY = 86_400;
const bounce = (extra: string, email = "a@example.com"): EmailFailure => ({
  type: "Bounce",
  email,
  extra,
  messageId: `message-${++messages}`,
});
const suppressed = async () =>
  (
    await house.query<{ line: string }>(
      "select email_address || ' ' || reason || ' ' || scope as line from suppressed_emails order by id",
    )
  ).map(({ line }) => line);

test("a permanent bounce and a complaint suppress at once, for every kind of mail", async () => {
  await house.people("ada");
  await addEmails(house.ctx, [{ userSub: "ada", email: "A@example.com", verified: true, cause: "identity" }]);
  house.reminders.length = 0;
  const done = await suppressAfterFailure(house.ctx, [
    bounce("Permanent/General"),
    { type: "Complaint", email: "b@example.com", extra: "abuse", messageId: "m" },
  ]);
  expect(done.map(({ outcome }) => outcome)).toEqual(["created", "created"]);
  expect((await suppressed()).sort()).toEqual(["a@example.com Bounce all", "b@example.com Complaint all"]);
  expect(house.reminders).toEqual(["-ada email:unreachable"]);
});

test("the third passing bounce within thirty days suppresses, and older ones no longer count", async () => {
  await suppressAfterFailure(house.ctx, [bounce("Transient/General")]);
  await house.ctx.clock.advance(20 * DAY);
  await suppressAfterFailure(house.ctx, [bounce("Undetermined/Undetermined", "A@Example.com")]);
  await house.ctx.clock.advance(10 * DAY + 1);
  expect(await suppressAfterFailure(house.ctx, [bounce("Transient/MailboxFull")])).toEqual([]);
  expect(await suppressed()).toEqual([]);
  await house.ctx.clock.advance(DAY);
  expect(await suppressAfterFailure(house.ctx, [bounce("Transient/General")])).toMatchObject([{ outcome: "created" }]);
  expect(await suppressed()).toEqual(["a@example.com Bounce all"]);
});

test("three passing bounces in one batch suppress too", async () => {
  const batch = [bounce("Transient/General"), bounce("Transient/General"), bounce("Transient/General")];
  await suppressAfterFailure(house.ctx, [...batch, bounce("Transient/General", "b@example.com")]);
  expect(await suppressed()).toEqual(["a@example.com Bounce all"]);
});

test("the same failure reported again changes nothing", async () => {
  const one = bounce("Transient/General");
  for (let times = 0; times < 5; times++) await suppressAfterFailure(house.ctx, [one, one]);
  expect(await suppressed()).toEqual([]);
  expect((await listEmailFailures(house.ctx, { limit: 10 })).items).toHaveLength(1);
  const complaint = { ...one, type: "Complaint" as const };
  expect(await suppressAfterFailure(house.ctx, [complaint])).toHaveLength(1);
  await house.query("delete from suppressed_emails");
  expect(await suppressAfterFailure(house.ctx, [complaint])).toEqual([]);
});

test("bounces that are the mail's own fault never count against the address", async () => {
  for (const subtype of ["MessageTooLarge", "ContentRejected", "AttachmentRejected"])
    for (const kind of ["Transient", "Permanent"])
      await suppressAfterFailure(house.ctx, [bounce(`${kind}/${subtype}`), bounce(`${kind}/${subtype}`)]);
  expect(await suppressed()).toEqual([]);
  await suppressAfterFailure(house.ctx, [bounce("Transient/General"), bounce("Transient/General")]);
  expect(await suppressed()).toEqual([]);
  expect((await listEmailFailures(house.ctx, { limit: 100, email: "A@EXAMPLE.com" })).items).toHaveLength(14);
});

test("the threshold is a setting, and 1 means the first bounce", async () => {
  const strict = house.with({ config: new Config([]).with([settings.softBounceThreshold, 1]) });
  await suppressAfterFailure(strict, [bounce("Undetermined/Undetermined")]);
  expect(await suppressed()).toEqual(["a@example.com Bounce all"]);
});

test("failures of what is no address are ignored, and failures without a message id are each counted", async () => {
  const nameless = { type: "Bounce", extra: "Transient/General" } as const;
  await suppressAfterFailure(house.ctx, [
    { ...nameless, email: "" },
    { ...nameless, email: "no address" },
    { ...nameless, email: `${"x".repeat(600)}@example.com` },
    { ...nameless, email: "nul\u0000@example.com" },
  ]);
  expect((await listEmailFailures(house.ctx, { limit: 10 })).items).toEqual([]);
  for (let times = 0; times < 3; times++)
    await suppressAfterFailure(house.ctx, [{ ...nameless, email: "c@example.com" }]);
  expect(await suppressed()).toEqual(["c@example.com Bounce all"]);
});

async function threeAtOnce(place: ContactsHouse): Promise<number> {
  await Promise.all([1, 2, 3].map(() => suppressAfterFailure(place.ctx, [bounce("Transient/General")])));
  return (await place.query("select 1 from suppressed_emails")).length;
}

test("three passing bounces that are reported at the same moment see each other", async () => {
  expect(await threeAtOnce(house)).toBe(1);
  const bin = findPostgres();
  if (!bin) return;
  const server = await startPostgres(bin);
  const engine = await openSql({ kind: "postgres", url: server.url });
  const other = await openContacts(engine);
  for (let round = 0; round < 5; round++) {
    await other.clear();
    expect(await threeAtOnce(other)).toBe(1);
  }
  await other.close();
  await engine.close();
  await server.stop();
});
