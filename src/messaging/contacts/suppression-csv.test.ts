import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import { addEmails, errors, exportSuppressedEmails, importSuppressedEmails, suppressEmails } from "./service.ts";
import { EMAIL_REASONS, EMAIL_SCOPES } from "./tables.ts";

let house: ContactsHouse;
beforeAll(async () => {
  house = await openContacts();
});
beforeEach(() => house.clear());
afterAll(() => house.close());

const exported = async () => {
  let text = "";
  for await (const part of exportSuppressedEmails(house.ctx)) text += part;
  return text;
};
const rows = () =>
  house.query("select email_address, reason, scope, note from suppressed_emails order by lower(email_address)");
const take = (text: string, options = {}) => importSuppressedEmails(house.ctx, text, options);

test("what was exported comes back the same, whatever notes and addresses look like", async () => {
  const address = fc
    .tuple(fc.constantFrom("=a", "+a", "-a", "'a", "'=a", "a'b", "a"), fc.nat(50))
    .map(([local, number]) => `${local}${number}@example.com`);
  const suppression = fc.record({
    email: address,
    reason: fc.constantFrom(...EMAIL_REASONS),
    scope: fc.constantFrom(...EMAIL_SCOPES),
    note: fc.option(
      fc.string({ unit: fc.constantFrom("a", '"', ",", "\n", "\r\n", "'", "=", " ", "ü"), minLength: 1, maxLength: 9 }),
      { nil: undefined },
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(suppression, { maxLength: 12, selector: ({ email }) => email }), async (wishes) => {
      await house.query("delete from suppressed_emails");
      await suppressEmails(house.ctx, wishes);
      const [before, file] = [await rows(), await exported()];
      expect(await take(file)).toEqual({ created: 0, strengthened: 0, kept: wishes.length, refused: 0, faults: [] });
      await house.query("delete from suppressed_emails");
      await take(file);
      expect(await rows()).toEqual(before);
    }),
    { numRuns: 25 },
  );
});

test("a file from elsewhere is taken with its own order of columns, and a line that makes no sense is left out and named", async () => {
  await house.people("ada");
  await addEmails(house.ctx, [{ userSub: "ada", email: "a@example.com", verified: true, cause: "identity" }]);
  house.reminders.length = 0;
  const file = [
    "\ufeffreason,Email",
    "bounce,a@example.com",
    ',"b@bücher.example"',
    "",
    "Complaint,nobody",
    "Sadness,c@example.com",
    "User,d@example.com,more",
    "complaint,A@Example.com",
  ].join("\n");
  const wanted = {
    refused: 3,
    faults: [
      { line: 5, reason: "the email is not an email address" },
      { line: 6, reason: "the reason must be one of User, Bounce, Complaint, Admin" },
      { line: 7, reason: "has more cells than the first line names" },
    ],
  };
  expect(await take(file, { dryRun: true })).toMatchObject(wanted);
  expect(await rows()).toEqual([]);
  expect(await take(file)).toMatchObject(wanted);
  expect(await rows()).toEqual([
    { email_address: "A@Example.com", reason: "Complaint", scope: "all", note: null },
    { email_address: "b@xn--bcher-kva.example", reason: "Admin", scope: "all", note: null },
  ]);
  expect(house.reminders).toEqual(["-ada email:unreachable"]);
});

test("a file that is no such list is refused before anything is written", async () => {
  for (const text of ["", "a@example.com", "name,address\nx,y", 'email\n"a@example.com', 'email\na"b@example.com'])
    expect(errors.unreadable_csv.matches(await take(text).catch((error: unknown) => error)), text).toBe(true);
  expect(await rows()).toEqual([]);
});

test("thousands of addresses are read page by page and written a thousand at a time", async () => {
  const file = `email\r\n${Array.from({ length: 4_500 }, (_, at) => `p${at}@example.com\r\n`).join("")}`;
  expect(await take(file)).toMatchObject({ created: 4_500, refused: 0 });
  expect((await exported()).split("\r\n")).toHaveLength(4_502);
});
