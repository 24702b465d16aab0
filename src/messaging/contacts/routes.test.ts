import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import { statisticsDomain } from "../../insight/statistics/index.ts";
import type { JobContext } from "../../jobs/context.ts";
import { contacts } from "./index.ts";
import { createPushToken } from "./jobs.ts";
import { addEmails, addPhones, suppressAfterFailure } from "./service.ts";

let server: TestServer;
const queued: { name: string; kwargs: never }[] = [];
const tokens: Record<string, string> = {};

beforeAll(async () => {
  server = await openTestServer({ domains: [operations, statisticsDomain(() => [contacts]), contacts] });
  Object.assign(server.ctx.jobs, {
    enqueue: async ({ name }: { name: string }, kwargs: never) => void queued.push({ name, kwargs }),
  });
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.ctx.flush();
  await server.ctx.sql.script(
    "delete from suppressed_emails; delete from suppressed_phone_numbers; delete from email_failures; delete from users;",
  );
  queued.length = 0;
  for (const sub of ["ada", "bob"]) {
    await admin("POST", "/api/1/admin/users", { sub });
    tokens[sub] = (await admin("POST", `/api/1/admin/users/${sub}/access_token`, {})).json().access_token;
  }
});

const admin = (method: string, path: string, body?: unknown) =>
  server.call(method, path, { token: server.admin, ...(body === undefined ? {} : { body }) });
const as = (sub: string, method: string, path: string, body?: unknown) =>
  server.call(method, path, { token: tokens[sub], ...(body === undefined ? {} : { body }) });
const outcome = (answer: { statusCode: number; body: string }) => [
  answer.statusCode,
  answer.body === "" ? undefined : JSON.parse(answer.body).type,
];
const TOKEN = "ExponentPushToken[abcdefghij]";
const mine = async (sub: string) => (await as(sub, "GET", "/api/1/users/me/contact_methods")).json();

async function runQueued(): Promise<void> {
  await createPushToken.runMany!(
    server.ctx as unknown as JobContext,
    queued.splice(0).map(({ kwargs }) => kwargs),
  );
}

describe("what people do themselves", () => {
  test("a person adds an address, sees it wait for verification, switches it off and removes it", async () => {
    const added = await as("ada", "POST", "/api/1/users/me/emails", { email: " Ada@Example.com " });
    expect(added.statusCode).toBe(201);
    const { uid } = added.json();
    expect(await mine("ada")).toEqual({
      emails: [
        {
          uid,
          value: "Ada@Example.com",
          verified: false,
          receives_notifications: true,
          suppressed: false,
          created_at: server.ctx.clock.now(),
        },
      ],
      phones: [],
      push_tokens: [],
    });
    const path = `/api/1/users/me/contact_methods/${uid}`;
    for (const [call, body] of [
      ["notifications", { enabled: false }],
      ["notifications", { enabled: true }],
      ["disable_notifications", undefined],
      ["disable_notifications", undefined],
    ] as const)
      expect((await as("ada", "POST", `${path}/${call}`, body)).statusCode).toBe(204);
    expect((await mine("ada")).emails[0].receives_notifications).toBe(false);
    expect((await as("ada", "DELETE", path)).statusCode).toBe(204);
    expect(outcome(await as("ada", "DELETE", path))).toEqual([404, "contact_method_not_found"]);
  });

  test("addresses that do not fit are refused, each with its reason", async () => {
    const add = async (email: unknown) => outcome(await as("ada", "POST", "/api/1/users/me/emails", { email }));
    for (const bad of [
      "",
      "x",
      "a@b",
      "a b@example.com",
      `${"x".repeat(511)}@example.com`,
      7,
      null,
      "a@example.com\r\nBcc: x",
    ])
      expect((await add(bad))[0], String(bad)).toBe(422);
    expect(await add("a@example.com")).toEqual([201, undefined]);
    expect(await add("A@EXAMPLE.com")).toEqual([409, "email_exists"]);
    for (const name of ["b", "c", "d", "e"]) await add(`${name}@example.com`);
    expect(await add("f@example.com")).toEqual([409, "too_many_emails"]);
  });

  test("nobody sees or touches the contact methods of others", async () => {
    const { uid } = (await as("ada", "POST", "/api/1/users/me/emails", { email: "a@example.com" })).json();
    const path = `/api/1/users/me/contact_methods/${uid}`;
    expect((await mine("bob")).emails).toEqual([]);
    expect(outcome(await as("bob", "DELETE", path))).toEqual([404, "contact_method_not_found"]);
    expect(outcome(await as("bob", "POST", `${path}/notifications`, { enabled: false }))).toEqual([
      404,
      "contact_method_not_found",
    ]);
    expect((await server.call("GET", "/api/1/users/me/contact_methods")).statusCode).toBe(401);
    expect(outcome(await as("bob", "DELETE", "/api/1/users/me/contact_methods/nonsense"))[0]).toBe(422);
    expect((await mine("ada")).emails[0].receives_notifications).toBe(true);
  });

  test("an app registers its push token through the queue, and switches it off", async () => {
    const register = (body: unknown) => as("ada", "POST", "/api/1/notifications/push/tokens/", body);
    for (const platform of ["ios", "android", "generic"])
      expect((await register({ push_token: TOKEN, platform })).statusCode).toBe(202);
    expect(queued[0]).toEqual({
      name: "runners.push.create_push_token",
      kwargs: { user_sub: "ada", expo_push_token: TOKEN, platform: "ios" },
    });
    await runQueued();
    const shown = await mine("ada");
    expect(shown.push_tokens).toMatchObject([{ platform: "ios", receives_notifications: true }]);
    expect(JSON.stringify(shown)).not.toContain(TOKEN);
    const off = (sub: string, push_token: string) =>
      as(sub, "POST", "/api/1/notifications/push/tokens/disable", { push_token });
    expect(outcome(await off("bob", TOKEN))).toEqual([404, "token_not_found"]);
    expect(outcome(await off("ada", "ExponentPushToken[another1]"))).toEqual([404, "token_not_found"]);
    expect((await off("ada", TOKEN)).statusCode).toBe(204);
    expect((await off("ada", TOKEN)).statusCode).toBe(204);
    expect((await mine("ada")).push_tokens[0].receives_notifications).toBe(false);
  });

  test("who registers push tokens without end has to wait, and nobody else has", async () => {
    const register = (sub: string) =>
      as(sub, "POST", "/api/1/notifications/push/tokens/", { push_token: TOKEN, platform: "ios" });
    for (let at = 0; at < 60; at++) expect((await register("ada")).statusCode).toBe(202);
    const refused = await register("ada");
    expect([...outcome(refused), refused.headers["retry-after"]]).toEqual([429, "too_many_registrations", "60"]);
    expect((await register("bob")).statusCode).toBe(202);
    expect(queued).toHaveLength(61);
    await server.ctx.clock.advance(61);
    expect((await register("ada")).statusCode).toBe(202);
  });

  test("what is no push token never reaches the queue", async () => {
    const bodies = [
      { push_token: "short", platform: "ios" },
      { push_token: "ExponentPushToken[a b c d e f g]", platform: "ios" },
      { push_token: `ExponentPushToken[${"x".repeat(64)}]`, platform: "ios" },
      { push_token: TOKEN, platform: "windows" },
      { push_token: TOKEN },
      { push_token: TOKEN, platform: "ios", more: 1 },
    ];
    for (const body of bodies)
      expect((await as("ada", "POST", "/api/1/notifications/push/tokens/", body)).statusCode).toBe(422);
    expect(queued).toEqual([]);
  });
});

describe("what administrators do", () => {
  for (const base of ["/api/1/admin/suppressed_emails", "/api/1/admin/email/suppressions"])
    test(`${base} lists, adds and lifts suppressions of addresses`, async () => {
      const added = await admin("POST", base, { email: "A@example.com", note: "asked by phone" });
      expect(added.statusCode).toBe(201);
      expect(added.json()).toMatchObject({ email_address: "A@example.com", reason: "Admin", scope: "all" });
      expect(outcome(await admin("POST", base, { email: "a@EXAMPLE.com" }))).toEqual([409, "already_suppressed"]);
      await suppressAfterFailure(server.ctx, [{ type: "Complaint", email: "b@example.com" }]);
      const list = async (query: string) =>
        (await admin("GET", `${base}?${query}`))
          .json()
          .items.map((item: { email_address: string }) => item.email_address);
      expect(await list("")).toEqual(["b@example.com", "A@example.com"]);
      expect(await list("email=a@example.com")).toEqual(["A@example.com"]);
      expect(await list("reason=Complaint")).toEqual(["b@example.com"]);
      const first = (await admin("GET", `${base}?limit=1`)).json();
      expect(await list(`limit=1&after=${first.next}`)).toEqual(["A@example.com"]);
      const file = await admin("GET", `${base}/export`);
      expect(file.headers["content-type"]).toBe("text/csv; charset=utf-8");
      expect(file.body).toMatch(/^email,reason,scope,note,created_at\r\nA@example.com,Admin,all,asked by phone,20/);
      const path = `${base}/${added.json().uid}`;
      expect((await admin("DELETE", path)).statusCode).toBe(204);
      expect(outcome(await admin("DELETE", path))).toEqual([404, "suppression_not_found"]);
      expect(await list("")).toEqual(["b@example.com"]);
      const take = (query: string) =>
        server.call("POST", `${base}/import${query}`, {
          token: server.admin,
          body: file.body,
          headers: { "content-type": "text/csv" },
        });
      expect((await take("?dry_run=true")).json()).toMatchObject({ created: 0, refused: 0 });
      expect((await take("")).json()).toMatchObject({ created: 1, kept: 1 });
      expect(await list("")).toEqual(["A@example.com", "b@example.com"]);
      expect(outcome(await admin("POST", `${base}/import`, "nonsense"))).toEqual([422, "unreadable_csv"]);
    });

  for (const base of ["/api/1/admin/suppressed_phone_numbers", "/api/1/admin/sms/suppressed_phone_numbers"])
    test(`${base} lists, adds and lifts suppressions of numbers`, async () => {
      const added = await admin("POST", base, { phone_number: "+1 (415) 555-2671" });
      expect(added.statusCode).toBe(201);
      expect(added.json()).toMatchObject({ phone_number: "+14155552671", reason: "User" });
      expect(outcome(await admin("POST", base, { phone_number: "+14155552671" }))).toEqual([409, "already_suppressed"]);
      expect(outcome(await admin("POST", base, { phone_number: "12" }))).toEqual([422, "invalid_phone_number"]);
      const found = await admin("GET", `${base}?phone_number=${encodeURIComponent("+14155552671")}`);
      expect(found.json().items).toHaveLength(1);
      expect((await admin("GET", `${base}?reason=Stop`)).json()).toEqual({ items: [], next: null });
      const path = `${base}/${added.json().uid}`;
      expect((await admin("DELETE", path)).statusCode).toBe(204);
      expect(outcome(await admin("DELETE", path))).toEqual([404, "suppression_not_found"]);
    });

  test("an application tells which addresses it knows, and what their owner decided since stays", async () => {
    const path = "/api/1/admin/users/ada/contact_methods";
    const known = (verified: boolean) => ({
      emails: [{ email: "ada@example.com", verified }],
      phones: [{ phone_number: "+1 415 555 0132", verified, receives_notifications: true }],
    });
    expect((await admin("POST", path, known(false))).json()).toMatchObject({
      emails: [{ value: "ada@example.com", verified: false, receives_notifications: true }],
      phones: [{ value: "+14155550132", verified: false, receives_notifications: true }],
    });
    const { uid } = (await mine("ada")).phones[0];
    await as("ada", "POST", `/api/1/users/me/contact_methods/${uid}/notifications`, { enabled: false });
    await admin("POST", path, known(true));
    expect((await admin("POST", path, known(false))).json()).toMatchObject({
      emails: [{ verified: true }],
      phones: [{ uid, verified: true, receives_notifications: false }],
    });
    const wrong = { phones: [{ phone_number: "911", verified: true, receives_notifications: true }] };
    expect(outcome(await admin("POST", path, wrong))).toEqual([422, "invalid_phone_number"]);
    expect(outcome(await admin("POST", path.replace("ada", "nobody"), known(true)))).toEqual([404, "user_not_found"]);
    expect(outcome(await as("ada", "POST", path, known(true)))).toEqual([403, "not_allowed"]);
  });

  test("support sees how a person can be reached, and what happened to it, page by page", async () => {
    await addEmails(server.ctx, [
      { userSub: "ada", email: "a@example.com", verified: true, cause: "identity" },
      { userSub: "bob", email: "b@example.com", verified: true, cause: "identity" },
    ]);
    await addPhones(server.ctx, [
      { userSub: "ada", phoneNumber: "+14155552671", verified: true, receivesNotifications: true, cause: "verify" },
    ]);
    const methods = (await admin("GET", "/api/1/admin/users/ada/contact_methods")).json();
    expect([methods.emails.length, methods.phones.length]).toEqual([1, 1]);
    const page = async (query: string) =>
      (await admin("GET", `/api/1/admin/users/ada/contact_method_log?${query}`)).json();
    const newest = await page("limit=1");
    expect(newest.items).toMatchObject([{ channel: "phone", action: "create_verified", reason: { source: "verify" } }]);
    const rest = await page(`limit=1&after=${newest.next}`);
    expect(rest).toMatchObject({ items: [{ channel: "email", identifier: "a@example.com" }], next: null });
    for (const path of ["contact_methods", "contact_method_log"])
      expect(outcome(await admin("GET", `/api/1/admin/users/nobody/${path}`))).toEqual([404, "user_not_found"]);
  });

  test("support finds people by name, address, number or sub, whatever signs they hold, the newest first", async () => {
    await admin("PATCH", "/api/1/admin/users/ada", { given_name: "Ada", family_name: "100%_<b>Love</b>" });
    await addEmails(server.ctx, [{ userSub: "ada", email: "Countess@Example.com", verified: true, cause: "identity" }]);
    await addPhones(server.ctx, [
      { userSub: "bob", phoneNumber: "+14155552671", verified: true, receivesNotifications: true, cause: "verify" },
    ]);
    const found = async (search: string) => {
      const { items } = (await admin("GET", `/api/1/admin/people?search=${encodeURIComponent(search)}`)).json();
      return items.map(({ sub }: { sub: string }) => sub);
    };
    for (const ada of ["ADA", "ada 100%", "%_<b>", "love", "countess@ex", "EXAMPLE.com"])
      expect([ada, await found(ada)]).toEqual([ada, ["ada"]]);
    for (const bob of ["bo", "+1 (415) 555", "2671"]) expect([bob, await found(bob)]).toEqual([bob, ["bob"]]);
    for (const nobody of ["ob", "_da", "%%", "26", "x@example.com"])
      expect([nobody, await found(nobody)]).toEqual([nobody, []]);
    await server.ctx.clock.advance(1);
    await admin("POST", "/api/1/admin/users", { sub: "cleo" });
    const first = (await admin("GET", "/api/1/admin/people?limit=1")).json();
    expect(first.items).toMatchObject([{ sub: "cleo", emails: [], phones: [], push_tokens: 0 }]);
    const rest = (await admin("GET", `/api/1/admin/people?limit=2&before=${first.next}`)).json();
    expect(rest.items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ sub: "ada", emails: ["Countess@Example.com"] }),
        expect.objectContaining({ sub: "bob", phones: ["+14155552671"] }),
      ]),
    );
    expect(rest.next).toBeNull();
    expect((await as("ada", "GET", "/api/1/admin/people")).statusCode).toBe(403);
    expect((await admin("GET", "/api/1/admin/people?search=%00")).statusCode).toBe(422);
  });

  test("an administrator switches and removes addresses of the person who is named, and the log says so", async () => {
    await addEmails(server.ctx, [{ userSub: "ada", email: "a@example.com", verified: true, cause: "identity" }]);
    const [{ uid }] = (await mine("ada")).emails;
    const path = (sub: string) => `/api/1/admin/users/${sub}/contact_methods/${uid}`;
    const off = { enabled: false };
    expect(outcome(await admin("POST", `${path("bob")}/notifications`, off))).toEqual([
      404,
      "contact_method_not_found",
    ]);
    expect((await as("ada", "POST", `${path("ada")}/notifications`, off)).statusCode).toBe(403);
    expect((await admin("POST", `${path("ada")}/notifications`, off)).statusCode).toBe(204);
    expect((await mine("ada")).emails[0].receives_notifications).toBe(false);
    expect(outcome(await admin("DELETE", path("bob")))).toEqual([404, "contact_method_not_found"]);
    expect((await admin("DELETE", path("ada"))).statusCode).toBe(204);
    expect((await mine("ada")).emails).toEqual([]);
    const { items } = (await admin("GET", "/api/1/admin/users/ada/contact_method_log?limit=2")).json();
    expect(items).toMatchObject([
      { action: "delete", reason: { source: "admin" } },
      { action: "disable_notifs", reason: { source: "admin" } },
    ]);
  });

  test("lists refuse what they cannot search for, and failures are listed by address", async () => {
    for (const query of ["limit=0", "limit=251", "after=x", "email=%00", "reason=Nothing"])
      expect((await admin("GET", `/api/1/admin/suppressed_emails?${query}`)).statusCode, query).toBe(422);
    await suppressAfterFailure(server.ctx, [
      { type: "Bounce", email: "a@example.com", extra: "Transient/General", messageId: "m" },
    ]);
    const { items } = (await admin("GET", "/api/1/admin/email/failures?email=A@example.com")).json();
    expect(items).toMatchObject([{ failure_type: "Bounce", failure_extra: "Transient/General", message_id: "m" }]);
    expect((await as("ada", "GET", "/api/1/admin/email/failures")).statusCode).toBe(403);
  });

  test("the counts of today are shown under the room's own address", async () => {
    await as("ada", "POST", "/api/1/users/me/emails", { email: "a@example.com" });
    const { today } = (await admin("GET", "/api/1/admin/contact_methods/partial_contact_method_stats")).json();
    expect(today).toMatchObject({ created: 1, created_breakdown: { "email:unverified:enabled:user": 1 }, deleted: 0 });
    expect((await admin("GET", "/api/1/admin/contact_methods/daily_contact_methods")).statusCode).toBe(200);
  });
});
