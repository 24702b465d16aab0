import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { findPostgres, startPostgres } from "../../../test/harness/postgres.ts";
import { Config } from "../../kernel/config.ts";
import { openSql } from "../../kernel/sql/index.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import {
  addEmails,
  addOwnEmail,
  addPhones,
  contactMethodsOf,
  installEffects,
  parsePhoneNumber,
  removeContactMethods,
  switchNotifications,
  toE164,
  verifyEmails,
} from "./service.ts";
import { settings } from "./settings.ts";

let house: ContactsHouse;
beforeAll(async () => {
  house = await openContacts();
});
beforeEach(() => house.clear());
afterAll(() => house.close());

const NUMBER = "+14155552671";
const email = (userSub: string, address: string, verified = true) =>
  ({ userSub, email: address, verified, cause: "identity" }) as const;
const phone = (userSub: string, overrides: object = {}) =>
  ({
    userSub,
    phoneNumber: NUMBER,
    verified: true,
    receivesNotifications: false,
    cause: "identity",
    ...overrides,
  }) as const;
const actions = async () =>
  (
    await house.query<{ line: string }>("select channel || ' ' || action as line from contact_method_log order by id")
  ).map(({ line }) => line);
const code = (error: { code?: string }) => error.code;

test("an address from a sign-in comes once, and becomes verified when a later sign-in vouches for it", async () => {
  await house.people("ada");
  expect(await addEmails(house.ctx, [email("ada", "Ada@Example.com", false)])).toEqual(["created"]);
  expect(await addEmails(house.ctx, [email("ada", "ada@example.com", false)])).toEqual(["unchanged"]);
  expect(house.reminders).toEqual([]);
  expect(await addEmails(house.ctx, [email("ada", "ADA@example.com")])).toEqual(["changed"]);
  expect(await addEmails(house.ctx, [email("ada", "ada@example.com", false)])).toEqual(["unchanged"]);
  expect((await contactMethodsOf(house.ctx, "ada")).emails).toMatchObject([
    { value: "Ada@Example.com", verified: true, receives_notifications: true, suppressed: false },
  ]);
  expect(await house.counters()).toEqual({
    created: { "email:unverified:enabled:identity": 1 },
    verified: { "email:identity": 1 },
  });
  expect(await actions()).toEqual(["email create_unverified", "email verify"]);
  expect(house.reminders).toEqual(["+ada email:email_added"]);
});

test("a batch of addresses tells each one's fate, repeats within it included", async () => {
  await house.people("ada", "bob");
  expect(
    await addEmails(house.ctx, [
      email("ada", "a@example.com", false),
      email("ada", "A@example.com", true),
      email("nobody", "a@example.com"),
      email("bob", "a@example.com"),
    ]),
  ).toEqual(["created", "changed", "unknown_user", "created"]);
  expect(await house.counters()).toEqual({
    created: { "email:unverified:enabled:identity": 1, "email:verified:enabled:identity": 1 },
    verified: { "email:identity": 1 },
  });
  expect(await addEmails(house.ctx, [])).toEqual([]);
});

test("a number from a sign-in comes switched off; finishing its verification does what the person chose", async () => {
  await house.people("ada");
  expect(await addPhones(house.ctx, [phone("ada", { verified: false })])).toEqual(["created"]);
  const chosen = (receivesNotifications: boolean) =>
    addPhones(house.ctx, [phone("ada", { cause: "verify", receivesNotifications })]);
  expect(await chosen(true)).toEqual(["changed"]);
  expect(await chosen(true)).toEqual(["unchanged"]);
  expect(await chosen(false)).toEqual(["changed"]);
  expect(await house.counters()).toEqual({
    created: { "phone:unverified:disabled:identity": 1 },
    verified: { "phone:verify": 1 },
    enabled_notifications: { "phone:verify": 1 },
    disabled_notifications: { "phone:verify": 1 },
  });
  expect(await actions()).toEqual([
    "phone create_unverified",
    "phone verify",
    "phone enable_notifs",
    "phone disable_notifs",
  ]);
  expect(house.reminders).toEqual(["+ada phone:phone_verify_finish", "-ada phone:user"]);
});

test("a number that is verified at once is created with the choice, and a later sign-in does not undo it", async () => {
  await house.people("ada");
  await addPhones(house.ctx, [phone("ada", { cause: "verify", receivesNotifications: true })]);
  expect(await addPhones(house.ctx, [phone("ada", { verified: false })])).toEqual(["unchanged"]);
  expect((await contactMethodsOf(house.ctx, "ada")).phones).toMatchObject([
    { value: NUMBER, verified: true, receives_notifications: true },
  ]);
  expect(await house.counters()).toEqual({ created: { "phone:verified:enabled:verify": 1 } });
});

test("a person adds addresses up to the limit, none twice, each announced for its verification", async () => {
  await house.people("ada");
  const mailed: string[] = [];
  const takeAway = installEffects({
    verificationMail: {
      emailAdded: async (_tx, { sub, email: address }) => {
        mailed.push(`${sub} ${address}`);
      },
    },
  });
  for (let index = 0; index < 5; index++) await addOwnEmail(house.ctx, "ada", `a${index}@example.com`);
  expect(await addOwnEmail(house.ctx, "ada", "more@example.com").catch(code)).toBe("too_many_emails");
  expect(await addOwnEmail(house.ctx, "ada", "A0@example.com").catch(code)).toBe("email_exists");
  expect(await addOwnEmail(house.ctx, "nobody", "a@example.com").catch(code)).toBe("user_not_found");
  takeAway();
  expect(mailed).toEqual([0, 1, 2, 3, 4].map((index) => `ada a${index}@example.com`));
  expect(await house.counters()).toEqual({ created: { "email:unverified:enabled:user": 5 } });
  const { emails } = await contactMethodsOf(house.ctx, "ada");
  expect(emails.every(({ verified }) => !verified)).toBe(true);
  expect(house.reminders).toEqual([]);
});

test("of many addresses added at once only as many are taken as the limit allows", async () => {
  await house.people("ada");
  const results = await Promise.allSettled(
    Array.from({ length: 12 }, (_, index) => addOwnEmail(house.ctx, "ada", `a${index}@example.com`)),
  );
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
  expect((await contactMethodsOf(house.ctx, "ada")).emails).toHaveLength(5);
});

test("a mail for verification that cannot be written leaves no address behind", async () => {
  await house.people("ada");
  const takeAway = installEffects({ verificationMail: { emailAdded: () => Promise.reject(new Error("no mail")) } });
  await expect(addOwnEmail(house.ctx, "ada", "a@example.com")).rejects.toThrow("no mail");
  takeAway();
  expect((await contactMethodsOf(house.ctx, "ada")).emails).toEqual([]);
  expect(await house.counters()).toEqual({});
});

test("addresses are verified by uid, once, and reminders begin", async () => {
  await house.people("ada");
  const { uid } = await addOwnEmail(house.ctx, "ada", "a@example.com");
  const unknown = uid.replace(/.$/, "!");
  expect(await verifyEmails(house.ctx, [uid, unknown])).toEqual(new Map([[uid, "verified"]]));
  expect(await verifyEmails(house.ctx, [uid])).toEqual(new Map([[uid, "unchanged"]]));
  expect((await house.counters()).verified).toEqual({ "email:verify": 1 });
  expect(house.reminders).toEqual(["+ada email:email_added"]);
});

test("notifications are switched once in each direction, by their owner only", async () => {
  await house.people("ada", "bob");
  await addEmails(house.ctx, [email("ada", "a@example.com")]);
  await addPhones(house.ctx, [phone("ada", { cause: "verify", receivesNotifications: true })]);
  const { emails, phones } = await contactMethodsOf(house.ctx, "ada");
  const both = [emails[0]!.uid, phones[0]!.uid];
  const turn = (userSub: string, enabled: boolean) =>
    switchNotifications(
      house.ctx,
      both.map((uid) => ({ userSub, uid, enabled })),
    );
  house.reminders.length = 0;
  expect(await turn("bob", false)).toEqual(new Set());
  expect(await turn("ada", false)).toEqual(new Set(both));
  expect(await turn("ada", false)).toEqual(new Set(both));
  expect(await turn("ada", true)).toEqual(new Set(both));
  const counters = await house.counters();
  expect(counters.disabled_notifications).toEqual({ "email:unsubscribe": 1, "phone:unsubscribe": 1 });
  expect(counters.enabled_notifications).toEqual({ "email:user": 1, "phone:user": 1 });
  expect(house.reminders).toEqual([
    "-ada email:user",
    "-ada phone:user",
    "+ada email:email_added",
    "+ada phone:phone_verify_finish",
  ]);
});

test("the nightly job of a development system switches phones off under its own name, and nothing else", async () => {
  await house.people("ada");
  await addPhones(house.ctx, [phone("ada", { cause: "verify", receivesNotifications: true })]);
  await addEmails(house.ctx, [email("ada", "a@example.com")]);
  const { emails, phones } = await contactMethodsOf(house.ctx, "ada");
  const off = (uid: string) =>
    switchNotifications(house.ctx, [{ userSub: "ada", uid, enabled: false }], "dev_auto_disable");
  await off(phones[0]!.uid);
  expect((await house.counters()).disabled_notifications).toEqual({ "phone:dev_auto_disable": 1 });
  expect(house.reminders.at(-1)).toBe("-ada phone:unreachable");
  await expect(off(emails[0]!.uid)).rejects.toThrow("only phones");
  expect((await contactMethodsOf(house.ctx, "ada")).emails[0]!.receives_notifications).toBe(true);
});

test("a person removes what is theirs, and only that", async () => {
  await house.people("ada", "bob");
  await addEmails(house.ctx, [email("ada", "a@example.com"), email("bob", "a@example.com")]);
  await addPhones(house.ctx, [phone("ada")]);
  const { emails, phones } = await contactMethodsOf(house.ctx, "ada");
  const remove = (userSub: string, ...uids: string[]) =>
    removeContactMethods(
      house.ctx,
      uids.map((uid) => ({ userSub, uid })),
    );
  expect(await remove("bob", emails[0]!.uid)).toEqual(new Set());
  expect(await remove("ada", "nonsense", emails[0]!.uid, phones[0]!.uid)).toEqual(
    new Set([emails[0]!.uid, phones[0]!.uid]),
  );
  expect(await remove("ada", emails[0]!.uid)).toEqual(new Set());
  expect(await contactMethodsOf(house.ctx, "ada")).toEqual({ emails: [], phones: [], push_tokens: [] });
  expect((await contactMethodsOf(house.ctx, "bob")).emails).toHaveLength(1);
  expect((await house.counters()).deleted).toEqual({ "email:user": 1, "phone:user": 1 });
  expect(house.reminders).toContain("-ada email:unreachable");
});

test("phone numbers are read as people write them, and refused when they cannot exist", () => {
  expect(toE164("(415) 555-2671", "US").number).toBe(NUMBER);
  expect(toE164("+49 30 901820").number).toBe("+4930901820");
  expect(toE164("+1 415-555-2671").country).toBe("US");
  for (const text of ["", "415 555 2671", "+1", "+1415555", "+14155552671 ext. 5", "+999123456789", "x".repeat(10_000)])
    expect(() => toE164(text), text).toThrow("not a phone number");
});

test("numbers of countries that are not served are refused", () => {
  const serving = (...countries: string[]) => ({ config: new Config([]).with([settings.allowedCountries, countries]) });
  expect(parsePhoneNumber(serving(), "+4930901820")).toBe("+4930901820");
  expect(parsePhoneNumber(serving("US", "DE"), "+4930901820")).toBe("+4930901820");
  expect(() => parsePhoneNumber(serving("US"), "+4930901820")).toThrow("not served here");
  expect(parsePhoneNumber(serving("US"), NUMBER)).toBe(NUMBER);
});

/** Does something else just before the known number is written, as another process might. */
class Interrupted extends MortalSql {
  interruption: (() => Promise<void>) | undefined;

  override async pass<T>(statement: string, run: () => Promise<T>): Promise<T> {
    const interrupt = /^\s*update "user_phone_numbers"/.test(statement) ? this.interruption : undefined;
    if (interrupt) this.interruption = undefined;
    await interrupt?.();
    return super.pass(statement, run);
  }
}

test("a sign-in that vouches for a number does not undo what its owner switches off at the same moment", async () => {
  const bin = findPostgres();
  const server = bin ? await startPostgres(bin) : undefined;
  const engine = server ? await openSql({ kind: "postgres", url: server.url }) : undefined;
  const place = engine ? await openContacts(engine) : house;
  await place.clear();
  await place.people("ada");
  await addPhones(place.ctx, [phone("ada", { verified: false, receivesNotifications: true })]);
  const { uid } = (await contactMethodsOf(place.ctx, "ada")).phones[0]!;
  let done = false;
  let switched: Promise<unknown> = Promise.resolve();
  const interrupted = new Interrupted(place.ctx.sql);
  interrupted.interruption = async () => {
    switched = switchNotifications(place.ctx, [{ userSub: "ada", uid, enabled: false }]).then(() => {
      done = true;
    });
    // The embedded engine serves one after the other; a server lets the second come as far as the row, or past it.
    if (engine)
      await eventually(async () => done || (await place.query("select 1 from pg_locks where not granted")).length > 0);
  };
  expect(await addPhones(place.with({ sql: interrupted }), [phone("ada", { verified: true })])).toEqual(["changed"]);
  await switched;
  expect((await contactMethodsOf(place.ctx, "ada")).phones).toMatchObject([
    { verified: true, receives_notifications: false },
  ]);
  if (engine) await place.close();
  await engine?.close();
  await server?.stop();
});
