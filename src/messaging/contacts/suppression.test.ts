import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import {
  addEmails,
  addPhones,
  chooseLists,
  contactMethodsOf,
  destinationsOf,
  isHeldBack,
  optIn,
  optOut,
  reachableAmong,
  registerPushTokens,
  suppressAfterFailure,
  suppressEmails,
  suppressedAmong,
  suppressPhones,
  switchNotifications,
  unsubscribeEmails,
  unsuppressEmails,
  unsuppressPhones,
} from "./service.ts";
import { EMAIL_REASONS, EMAIL_SCOPES } from "./tables.ts";

let house: ContactsHouse;
beforeAll(async () => {
  house = await openContacts();
});
beforeEach(() => house.clear());
afterAll(() => house.close());

const NUMBER = "+14155552671";
const OTHER = "+4930901820";
const email = (userSub: string, address: string) =>
  ({ userSub, email: address, verified: true, cause: "identity" }) as const;
const phone = (userSub: string, phoneNumber = NUMBER, verified = true) =>
  ({ userSub, phoneNumber, verified, receivesNotifications: true, cause: "verify" }) as const;

test("a stronger reason replaces a weaker one and a wider scope a narrower one, in any order", async () => {
  const arbitrary = fc.array(
    fc.record({
      email: fc.constantFrom("a@example.com", "A@Example.com", "b@example.com"),
      reason: fc.constantFrom(...EMAIL_REASONS),
      scope: fc.constantFrom(...EMAIL_SCOPES),
    }),
    { minLength: 1, maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(arbitrary, fc.boolean(), async (wishes, atOnce) => {
      await house.query("delete from suppressed_emails");
      if (atOnce) await suppressEmails(house.ctx, wishes);
      else for (const wish of wishes) await suppressEmails(house.ctx, [wish]);
      const rows = await house.query<{ address: string; reason: string; scope: string }>(
        "select lower(email_address) as address, reason, scope from suppressed_emails order by 1",
      );
      const expected = ["a@example.com", "b@example.com"].flatMap((address) => {
        const own = wishes.filter((wish) => wish.email.toLowerCase() === address);
        if (own.length === 0) return [];
        const strongest = Math.max(...own.map(({ reason }) => EMAIL_REASONS.indexOf(reason)));
        const scope = own.some((wish) => wish.scope === "all") ? "all" : "lists";
        return [{ address, reason: EMAIL_REASONS[strongest], scope }];
      });
      expect(rows).toEqual(expected);
    }),
    { numRuns: 40 },
  );
});

test("suppressing tells what it did: created, strengthened, or kept as it was", async () => {
  const [first] = await suppressEmails(house.ctx, [{ email: "A@example.com", reason: "User", note: "by letter" }]);
  expect(first).toMatchObject({
    outcome: "created",
    suppression: { email_address: "A@example.com", reason: "User", scope: "all", note: "by letter" },
  });
  const [second] = await suppressEmails(house.ctx, [{ email: "a@EXAMPLE.com", reason: "Complaint" }]);
  expect(second).toMatchObject({
    outcome: "strengthened",
    suppression: { uid: first!.suppression.uid, reason: "Complaint", note: "by letter" },
  });
  const [third] = await suppressEmails(house.ctx, [{ email: "a@example.com", reason: "Bounce" }]);
  expect(third).toMatchObject({ outcome: "kept", suppression: { reason: "Complaint" } });
});

test("a suppressed address is no destination for any account, and lifting it brings reminders back", async () => {
  await house.people("ada", "bob", "eve");
  await addEmails(house.ctx, [
    email("ada", "A@example.com"),
    email("bob", "a@example.com"),
    email("eve", "a@example.com"),
    email("eve", "eve@example.com"),
  ]);
  house.reminders.length = 0;
  await suppressEmails(house.ctx, [{ email: "a@EXAMPLE.com", reason: "Admin" }]);
  expect(house.reminders).toEqual(["-ada email:unreachable", "-bob email:unreachable"]);
  const found = await destinationsOf(house.ctx, "email", ["ada", "bob", "eve"]);
  expect([...found].map(([sub, list]) => [sub, list.map(({ address }) => address)])).toEqual([
    ["eve", ["eve@example.com"]],
  ]);
  expect((await contactMethodsOf(house.ctx, "ada")).emails[0]).toMatchObject({
    suppressed: true,
    receives_notifications: true,
  });
  house.reminders.length = 0;
  expect(await unsuppressEmails(house.ctx, { emails: ["A@Example.com"] })).toEqual(["a@EXAMPLE.com"]);
  expect(house.reminders).toEqual(["+ada email:email_added", "+bob email:email_added"]);
  expect(await unsuppressEmails(house.ctx, { emails: ["A@Example.com"] })).toEqual([]);
  expect((await house.counters()).disabled_notifications).toBeUndefined();
});

test("taking back an unsubscription does not lift a bounce", async () => {
  await suppressEmails(house.ctx, [
    { email: "a@example.com", reason: "User" },
    { email: "b@example.com", reason: "Bounce" },
  ]);
  const emails = ["a@example.com", "b@example.com"];
  expect(await unsuppressEmails(house.ctx, { emails }, { only: "User" })).toEqual(["a@example.com"]);
});

test("unsubscribing without an account suppresses, is written down, and holds for every account", async () => {
  await house.people("ada", "bob");
  await addEmails(house.ctx, [email("ada", "a@example.com"), email("bob", "a@example.com")]);
  const before = await house.counters();
  house.reminders.length = 0;
  const ask = { email: "A@Example.COM", linkCode: "abc", visitorId: 7 };
  expect(await unsubscribeEmails(house.ctx, [ask, { email: "nobody@example.com", emailUid: "crl_em_1" }])).toEqual([
    true,
    true,
  ]);
  expect(await unsubscribeEmails(house.ctx, [ask])).toEqual([false]);
  expect(house.reminders).toEqual(["-ada email:user", "-bob email:user"]);
  expect(await house.counters()).toEqual(before);
  expect(
    await house.query(
      "select link_code, email_uid, visitor_known, suppressed from unsubscribed_emails_log order by id",
    ),
  ).toEqual([
    { link_code: "abc", email_uid: null, visitor_known: true, suppressed: true },
    { link_code: null, email_uid: "crl_em_1", visitor_known: false, suppressed: true },
    { link_code: "abc", email_uid: null, visitor_known: true, suppressed: false },
  ]);
  expect(await house.query("select distinct reason, scope from suppressed_emails")).toEqual([
    { reason: "User", scope: "lists" },
  ]);
  await expect(unsubscribeEmails(house.ctx, [{ email: "x@example.com" }])).rejects.toThrow();
  expect(await house.query("select 1 from suppressed_emails where email_address = 'x@example.com'")).toEqual([]);
});

test("STOP silences a number for all its accounts, and START brings them back", async () => {
  await house.people("ada", "bob");
  await addPhones(house.ctx, [phone("ada"), phone("bob"), phone("bob", OTHER)]);
  await switchNotifications(house.ctx, [
    { userSub: "bob", uid: (await contactMethodsOf(house.ctx, "bob")).phones[1]!.uid, enabled: false },
  ]);
  house.reminders.length = 0;
  expect(await optOut(house.ctx, [NUMBER])).toMatchObject([
    { outcome: "created", suppression: { phone_number: NUMBER, reason: "Stop", reason_details: {} } },
  ]);
  expect(await optOut(house.ctx, [NUMBER])).toMatchObject([{ outcome: "kept" }]);
  expect(house.reminders).toEqual(["-ada phone:sms_stop", "-bob phone:sms_stop"]);
  house.reminders.length = 0;
  const before = await house.counters();
  expect(await optIn(house.ctx, [NUMBER])).toEqual([{ users: 2, verified: false, unsuppressed: true }]);
  expect(house.reminders).toEqual(["+ada phone:sms_start", "+bob phone:sms_start"]);
  expect(await house.counters()).toEqual(before);
});

test("START from the number of one account verifies it, lifts any suppression, and switches nothing on", async () => {
  await house.people("ada");
  await addPhones(house.ctx, [{ ...phone("ada"), cause: "identity", verified: false, receivesNotifications: false }]);
  await suppressPhones(house.ctx, [
    { phoneNumber: NUMBER, reason: "Unreachable", details: { subidentifier: "30005" } },
  ]);
  expect(await optIn(house.ctx, [NUMBER])).toEqual([{ users: 1, verified: true, unsuppressed: true }]);
  expect((await contactMethodsOf(house.ctx, "ada")).phones).toMatchObject([
    { verified: true, receives_notifications: false, suppressed: false },
  ]);
  const counters = await house.counters();
  expect(counters.verified).toEqual({ "phone:sms_start": 1 });
  expect(counters.enabled_notifications).toBeUndefined();
  expect(await optIn(house.ctx, [NUMBER])).toEqual([{ users: 1, verified: false, unsuppressed: false }]);
});

test("START from a number without or with several accounts undoes a STOP, but no other suppression", async () => {
  await house.people("ada", "bob");
  await addPhones(house.ctx, [phone("ada"), phone("bob")]);
  await suppressPhones(house.ctx, [
    { phoneNumber: NUMBER, reason: "Unreachable" },
    { phoneNumber: OTHER, reason: "Stop" },
  ]);
  expect(await optIn(house.ctx, [NUMBER, OTHER])).toEqual([
    { users: 2, verified: false, unsuppressed: false },
    { users: 0, verified: false, unsuppressed: true },
  ]);
  expect(await unsuppressPhones(house.ctx, { phoneNumbers: [NUMBER, OTHER] })).toEqual([NUMBER]);
  expect(house.reminders.slice(-2)).toEqual(["+ada phone:sms_start", "+bob phone:sms_start"]);
});

test("a thousand addresses are asked for with one statement, and answered as they were asked for", async () => {
  const emails = Array.from({ length: 1000 }, (_, index) => `User${index}@example.com`);
  const phones = Array.from({ length: 1000 }, (_, index) => `+1415555${String(index).padStart(4, "0")}`);
  await suppressEmails(house.ctx, [
    { email: "user7@EXAMPLE.com", reason: "Bounce" },
    { email: "user8@example.com", reason: "User", scope: "lists" },
  ]);
  await optOut(house.ctx, [phones[5]!]);
  const counting = new MortalSql(house.ctx.sql);
  const found = await suppressedAmong({ sql: counting }, { emails, phones });
  expect(counting.sent).toBe(1);
  expect([...found.emails]).toEqual([
    ["User7@example.com", { reason: "Bounce", scope: "all" }],
    ["User8@example.com", { reason: "User", scope: "lists" }],
  ]);
  expect([...found.phones]).toEqual([[phones[5], { reason: "Stop" }]]);
  await suppressedAmong({ sql: counting }, {});
  expect(counting.sent).toBe(1);
});

test("suppressing a thousand addresses takes as many statements as suppressing one", async () => {
  const statements = async (count: number, prefix: string) => {
    const counting = new MortalSql(house.ctx.sql);
    const wishes = Array.from({ length: count }, (_, index) => `${prefix}${index}@example.com`);
    const done = await suppressEmails(
      house.with({ sql: counting }),
      wishes.map((address) => ({ email: address, reason: "Bounce" as const })),
    );
    expect(done).toHaveLength(count);
    return counting.sent;
  };
  expect(await statements(1000, "many")).toBe(await statements(1, "one"));
});

test("destinations are verified, switched on and not suppressed; one query serves a thousand users", async () => {
  const subs = Array.from({ length: 1000 }, (_, index) => `u${index}`);
  await house.query(
    "insert into users (sub, uuid, created_at) select 'u' || n, gen_random_uuid(), now() from generate_series(0, 999) n",
  );
  await addEmails(
    house.ctx,
    subs.map((sub) => email(sub, `${sub}@example.com`)),
  );
  await addEmails(house.ctx, [{ ...email("u1", "second@example.com"), verified: false }]);
  await addPhones(house.ctx, [phone("u0"), phone("u1", OTHER, true), { ...phone("u2"), receivesNotifications: false }]);
  await registerPushTokens(house.ctx, [
    { userSub: "u0", token: "ExponentPushToken[one]", platform: "android" },
    { userSub: "u0", token: "ExponentPushToken[two]", platform: "ios" },
  ]);
  await optOut(house.ctx, [OTHER]);
  const counting = new MortalSql(house.ctx.sql);
  const ask = async (channel: "email" | "phone" | "push") => {
    const found = await destinationsOf({ sql: counting }, channel, subs);
    return [...found].map(([sub, list]) => [sub, ...list.map(({ address }) => address)]);
  };
  const emails = await ask("email");
  expect(emails).toHaveLength(1000);
  expect(emails[1]).toEqual(["u1", "u1@example.com"]);
  expect(await ask("phone")).toEqual([["u0", NUMBER]]);
  expect(await ask("push")).toEqual([["u0", "ExponentPushToken[one]", "ExponentPushToken[two]"]]);
  expect(counting.sent).toBe(3);
  const found = await destinationsOf(house.ctx, "push", ["u0"]);
  expect(found.get("u0")![0]).toMatchObject({ platform: "android" });
  const ids = await house.query<{ id: number }>("select id from users where sub in ('u0', 'u1') order by sub");
  expect(
    await reachableAmong(
      counting.tables<never>(),
      "phone",
      ids.map(({ id }) => id),
    ),
  ).toEqual(new Set([ids[0]!.id]));
  expect(counting.sent).toBe(4);
});

test("an address in another script is the same address however it is written, when added, bounced and asked for", async () => {
  await house.people("ada");
  expect(
    await addEmails(house.ctx, [email("ada", "ada@bücher.example"), email("ada", "no address"), email("ada", "a@b")]),
  ).toEqual(["created", "invalid_address", "invalid_address"]);
  const shown = async () => (await contactMethodsOf(house.ctx, "ada")).emails.map(({ value }) => value);
  expect(await shown()).toEqual(["ada@xn--bcher-kva.example"]);
  const failure = { type: "Bounce", extra: "Permanent/General" } as const;
  await suppressAfterFailure(house.ctx, [{ ...failure, email: "ada@bücher.example" }]);
  expect([...(await destinationsOf(house.ctx, "email", ["ada"]))]).toEqual([]);
});

test("whoever stays on one list of two gets its mails, codes, and nothing of the other; bounces hold whatever is chosen", async () => {
  await house.people("ada");
  await addEmails(house.ctx, [email("ada", "A@example.com")]);
  const choose = (...wanted: string[]) =>
    chooseLists(house.ctx, {
      email: "a@EXAMPLE.com",
      lists: ["reminders", "announcements"],
      wanted,
      emailUid: "crl_em_1",
      scope: "lists",
    });
  const blocked = async () => {
    const held = (await suppressedAmong(house.ctx, { emails: ["a@example.com"] })).emails.get("a@example.com");
    return ["reminders", "announcements", null].filter((list) => isHeldBack(held, list));
  };
  const reached = async (list?: string) => (await destinationsOf(house.ctx, "email", ["ada"], { list })).size;
  await choose("announcements");
  await choose("announcements");
  expect([await blocked(), await reached(), await reached("reminders"), await reached("announcements")]).toEqual([
    ["reminders"],
    1,
    0,
    1,
  ]);
  await choose();
  expect([await blocked(), await reached()]).toEqual([["reminders", "announcements"], 0]);
  expect(await house.query("select 1 from email_list_optouts")).toEqual([]);
  await choose("reminders");
  expect([await blocked(), await reached("reminders")]).toEqual([["announcements"], 1]);
  await choose("reminders", "announcements");
  expect([await blocked(), await reached("announcements")]).toEqual([[], 1]);
  expect(house.reminders).toEqual(["+ada email:email_added", "-ada email:user", "+ada email:email_added"]);
  expect(await house.query("select suppressed from unsubscribed_emails_log order by id")).toEqual([
    { suppressed: false },
    { suppressed: true },
    { suppressed: false },
  ]);
  await suppressAfterFailure(house.ctx, [{ type: "Bounce", email: "a@example.com", extra: "Permanent/General" }]);
  await choose("reminders", "announcements");
  expect(await blocked()).toEqual(["reminders", "announcements", null]);
});
