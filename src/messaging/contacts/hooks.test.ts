import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { deleteUser } from "../../people/users/service.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import { contacts } from "./index.ts";
import {
  addEmails,
  addPhones,
  contactMethodLog,
  contactMethodsOf,
  optOut,
  registerPushTokens,
  suppressEmails,
} from "./service.ts";
import type { ContactTables } from "./tables.ts";

let house: ContactsHouse;
beforeAll(async () => {
  house = await openContacts();
});
beforeEach(() => house.clear());
afterAll(() => house.close());

const NUMBER = "+14155552671";
const email = (userSub: string, address: string, verified = true) =>
  ({ userSub, email: address, verified, cause: "identity" }) as const;
const tokens = (userSub: string, from: number, count: number) =>
  Array.from(
    { length: count },
    (_, index) => ({ userSub, token: `ExponentPushToken[${from + index}]`, platform: "ios" }) as const,
  );
const phone = (userSub: string) =>
  ({ userSub, phoneNumber: NUMBER, verified: true, receivesNotifications: true, cause: "verify" }) as const;

async function sweep(): Promise<void> {
  await house.ctx.clock.advance(10);
  await sweepDeltas(house.ctx);
}

test("a deleted user takes addresses, tokens, reminders and log along, counted; suppressions stay", async () => {
  await house.people("ada", "bob");
  await addEmails(house.ctx, [
    email("ada", "a@example.com"),
    email("ada", "b@example.com"),
    email("bob", "a@example.com"),
  ]);
  await addPhones(house.ctx, [phone("ada")]);
  await registerPushTokens(house.ctx, tokens("ada", 0, 3));
  await suppressEmails(house.ctx, [{ email: "b@example.com", reason: "Complaint" }]);
  await optOut(house.ctx, [NUMBER]);
  house.reminders.length = 0;
  await deleteUser(house.ctx, [contacts], "ada");
  await sweep();
  expect((await house.counters()).deleted).toEqual({ "email:account": 2, "phone:account": 1, "push:account": 3 });
  expect(house.tokenEvents.deleted_due_to_user_deletion).toBe(3);
  expect(house.reminders).toEqual(["-ada email:account_deleted", "-ada push:account_deleted"]);
  expect(await house.query("select 1 from contact_method_log")).toHaveLength(1);
  expect((await contactMethodsOf(house.ctx, "bob")).emails).toHaveLength(1);
  expect(
    await house.query("select 1 from suppressed_emails union all select 1 from suppressed_phone_numbers"),
  ).toHaveLength(2);
});

test("a deletion that another room refuses leaves contact methods and counters as they were", async () => {
  await house.people("ada");
  await addEmails(house.ctx, [email("ada", "a@example.com")]);
  const refusing = { name: "refusing", onUserDeleting: () => Promise.reject(new Error("not now")) };
  await expect(deleteUser(house.ctx, [contacts, refusing], "ada")).rejects.toThrow("not now");
  await sweep();
  expect((await contactMethodsOf(house.ctx, "ada")).emails).toHaveLength(1);
  expect((await house.counters()).deleted).toBeUndefined();
});

test("when two accounts become one, it has every address once, at most ten tokens, and both logs", async () => {
  const [kept, gone] = await house.people("kept", "gone");
  await addEmails(house.ctx, [
    email("kept", "Same@example.com", false),
    email("gone", "same@example.com"),
    email("gone", "other@example.com"),
  ]);
  await addPhones(house.ctx, [phone("kept"), phone("gone")]);
  await registerPushTokens(house.ctx, tokens("gone", 0, 6));
  await house.ctx.clock.advance(1);
  await registerPushTokens(house.ctx, tokens("kept", 10, 6));
  const logged = (await house.query("select 1 from contact_method_log")).length;
  house.reminders.length = 0;
  await house.ctx.sql
    .tables<ContactTables>()
    .transaction()
    .execute((tx) => contacts.onUserMerging(house.ctx, tx, { id: kept!, sub: "kept" }, { id: gone!, sub: "gone" }));
  await sweep();
  const methods = await contactMethodsOf(house.ctx, "kept");
  expect(methods.emails.map(({ value, verified }) => [value, verified])).toEqual([
    ["Same@example.com", true],
    ["other@example.com", true],
  ]);
  expect(methods.phones).toHaveLength(1);
  expect(methods.push_tokens).toHaveLength(10);
  expect(await house.query("select 1 from user_push_tokens where token like '%[0]' or token like '%[1]'")).toEqual([]);
  expect(await contactMethodsOf(house.ctx, "gone")).toEqual({ emails: [], phones: [], push_tokens: [] });
  const counters = await house.counters();
  expect(counters.deleted).toEqual({ "email:account": 1, "phone:account": 1, "push:excessive": 2 });
  expect(counters.verified).toEqual({ "email:identity": 1 });
  expect((await contactMethodLog(house.ctx, "kept", { limit: 100 })).items).toHaveLength(logged + 3);
  expect(house.reminders).toEqual([
    "+kept email:email_added",
    "-gone email:account_deleted",
    "-gone phone:account_deleted",
    "-gone push:account_deleted",
  ]);
});
