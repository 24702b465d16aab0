import { type QueryExecutorProvider, sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain } from "../../domain.ts";
import type { JobContext } from "../../jobs/context.ts";
import { defineErrors } from "../../kernel/errors.ts";
import { forgetUserKeys } from "./jobs.ts";
import { createUser, deleteUser, getUsers, isTimezone, listUsers } from "./service.ts";
import type { UserTables } from "./tables.ts";
import { uuidAt } from "./uuid.ts";

const refusals = defineErrors({ owes_money: { status: 409, doc: "The user owes money." } });
const story: string[] = [];
let debtor: string | undefined;

const first = domain({
  name: "first",
  migrations: [
    {
      number: 1,
      name: "create belongings",
      up: "create table belongings (user_id bigint not null references users (id), what text not null);",
    },
  ],
  onUserCreated: async (_ctx, tx, { id, sub }) => {
    story.push(`first welcomes ${sub}`);
    await sql`insert into belongings (user_id, what) values (${id}, 'a hat')`.execute(tx as QueryExecutorProvider);
  },
  onUserDeleting: async (_ctx, tx, { id, sub }) => {
    story.push(`first lets ${sub} go`);
    await sql`delete from belongings where user_id = ${id}`.execute(tx as QueryExecutorProvider);
  },
  perUserKeys: ({ sub, uuid }) => [`first:${sub}`, `first:by_uuid:${uuid}`],
});
const second = domain({
  name: "second",
  onUserCreated: async (_ctx, _tx, { sub }) => {
    story.push(`second welcomes ${sub}`);
    if (sub === "unwelcome") throw refusals.owes_money();
  },
  onUserDeleting: async (_ctx, _tx, { sub }) => {
    story.push(`second lets ${sub} go`);
    if (sub === debtor) throw refusals.owes_money();
  },
  perUserKeys: ({ sub }) => [`second:${sub}`],
});

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ domains: [first, second] });
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.ctx.flush();
  await server.ctx.sql.script("delete from belongings; delete from users;");
  story.length = 0;
  debtor = undefined;
  server.committedJobs.length = 0;
});

const admin = (method: string, path: string, body?: unknown) =>
  server.call(method, `/api/1/admin/users${path}`, { token: server.admin, body });
const belongings = async () => {
  return (await sql`select what from belongings`.execute(server.ctx.sql.tables())).rows.length;
};
const count = async () => (await server.ctx.sql.tables<UserTables>().selectFrom("users").select("id").execute()).length;

test("an administrator creates, reads, changes and deletes a user", async () => {
  const created = await admin("POST", "", { sub: "ada", given_name: "Ada", timezone: "Europe/London" });
  expect(created.statusCode).toBe(201);
  expect(created.json()).toEqual({
    sub: "ada",
    uuid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    role: "user",
    timezone: "Europe/London",
    given_name: "Ada",
    family_name: null,
    created_at: server.ctx.clock.now(),
  });
  expect((await admin("GET", "/ada")).json()).toEqual(created.json());
  const changed = await admin("PATCH", "/ada", { role: "organizer", timezone: "Asia/Tokyo", given_name: null });
  expect(changed.json()).toMatchObject({ role: "organizer", timezone: "Asia/Tokyo", given_name: null });
  expect((await admin("DELETE", "/ada")).statusCode).toBe(204);
  for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const)
    expect((await admin(method, "/ada", body)).json().type).toBe("user_not_found");
});

test("a user made without anything gets a sub of its own, and a sub is taken once", async () => {
  const { sub } = (await admin("POST", "")).json();
  expect(sub).toMatch(/^crl_u_/);
  const again = await admin("POST", "", { sub });
  expect([again.statusCode, again.json().type]).toEqual([409, "user_exists"]);
  expect(await count()).toBe(1);
});

test("values that no user may have are refused with their place", async () => {
  for (const [body, path] of [
    [{ timezone: "Mars/Olympus" }, "timezone"],
    [{ timezone: "+02:00" }, "timezone"],
    [{ role: "king" }, "role"],
    [{ sub: "a:b" }, "sub"],
    [{ given_name: "" }, "given_name"],
    [{ given_name: "x".repeat(101) }, "given_name"],
  ] as const) {
    const reply = await admin("POST", "", body);
    expect([reply.statusCode, reply.json().detail?.[0]?.path]).toEqual([422, path]);
  }
  expect((await admin("POST", "", { id: 7 })).statusCode).toBe(422);
  expect(isTimezone("America/Argentina/Buenos_Aires")).toBe(true);
});

test("users are listed in order of arrival, page after page, even when the last of a page is gone", async () => {
  for (const sub of ["one", "two", "three", "four", "five"]) {
    await createUser(server.ctx, [], { sub, role: sub === "four" ? "admin" : "user" });
    await server.ctx.clock.advance(0.01);
  }
  const page = async (query: string) => (await admin("GET", `?limit=2${query}`)).json();
  const one = await page("");
  expect(one.items.map((user: { sub: string }) => user.sub)).toEqual(["one", "two"]);
  await admin("DELETE", "/two");
  const two = await page(`&after=${one.next}`);
  expect(two.items.map((user: { sub: string }) => user.sub)).toEqual(["three", "four"]);
  const last = await page(`&after=${two.next}`);
  expect([last.items.length, last.next]).toEqual([1, null]);
  expect((await listUsers(server.ctx, { limit: 10, role: "admin" })).users.map(({ sub }) => sub)).toEqual(["four"]);
});

test("many users are read with one question, and unknown ones are simply absent", async () => {
  await createUser(server.ctx, [], { sub: "here" });
  await createUser(server.ctx, [], { sub: "there" });
  const found = await getUsers(server.ctx, ["there", "nowhere", "here"]);
  expect([...found.keys()].sort()).toEqual(["here", "there"]);
  expect(await getUsers(server.ctx, [])).toEqual(new Map());
});

test("every room welcomes a new user in the order of the floor plan, or there is no new user", async () => {
  await admin("POST", "", { sub: "ada" });
  expect(story).toEqual(["first welcomes ada", "second welcomes ada"]);
  const refused = await admin("POST", "", { sub: "unwelcome" });
  expect([refused.statusCode, refused.json().type]).toEqual([409, "owes_money"]);
  expect([await count(), await belongings()]).toEqual([1, 1]);
});

test("a deleted user takes along what the rooms kept, in SQL and in Redis", async () => {
  const { uuid } = (await admin("POST", "", { sub: "ada" })).json();
  const keys = ["first:ada", `first:by_uuid:${uuid}`, "second:ada"];
  for (const key of [...keys, "first:other"]) await server.ctx.redis.commands.set(key, "1");
  await admin("DELETE", "/ada");
  expect(story.slice(2)).toEqual(["first lets ada go", "second lets ada go"]);
  expect([await count(), await belongings()]).toEqual([0, 0]);
  expect(await server.ctx.redis.commands.keys("*:*ada*")).toEqual([]);
  expect(await server.ctx.redis.commands.exists(keys[1]!)).toBe(0);
  expect(await server.ctx.redis.commands.exists("first:other")).toBe(1);
  expect(server.committedJobs).toEqual([{ name: forgetUserKeys.name, kwargs: { sub: "ada", keys } }]);
});

test("a room that refuses to let a user go keeps everything as it was", async () => {
  await admin("POST", "", { sub: "ada" });
  await server.ctx.redis.commands.set("second:ada", "1");
  debtor = "ada";
  const refused = await admin("DELETE", "/ada");
  expect([refused.statusCode, refused.json().type]).toEqual([409, "owes_money"]);
  expect([await count(), await belongings()]).toEqual([1, 1]);
  expect(await server.ctx.redis.commands.exists("second:ada")).toBe(1);
});

test("keys that a dying process left behind are removed by the job, unless the sub has a new owner", async () => {
  await createUser(server.ctx, server.domains, { sub: "ada" });
  await createUser(server.ctx, server.domains, { sub: "bob" });
  for (const key of ["first:ada", "first:bob"]) await server.ctx.redis.commands.set(key, "1");
  const broken = Object.create(server.ctx, {
    redis: {
      value: { topology: server.ctx.redis.topology, commands: { unlink: () => Promise.reject(new Error("gone")) } },
    },
  }) as typeof server.ctx;
  await deleteUser(broken, server.domains, "ada");
  await deleteUser(broken, server.domains, "bob");
  await createUser(server.ctx, server.domains, { sub: "bob" });
  for (const { kwargs } of server.committedJobs)
    await forgetUserKeys.run!(server.ctx as unknown as JobContext, kwargs as { sub: string; keys: string[] });
  expect(await server.ctx.redis.commands.keys("first:*")).toEqual(["first:bob"]);
});

test("users read and change their own profile, but not their role", async () => {
  await admin("POST", "", { sub: "ada" });
  const minted = (await admin("POST", "/ada/access_token")).json();
  const me = (method: string, body?: unknown) =>
    server.call(method, "/api/1/users/me", { token: minted.access_token, body });
  expect((await me("GET")).json()).toMatchObject({ sub: "ada", timezone: null });
  const changed = await me("PATCH", { timezone: "Europe/Berlin", given_name: " Ada ", family_name: "Lovelace" });
  expect(changed.json()).toMatchObject({ timezone: "Europe/Berlin", given_name: "Ada", family_name: "Lovelace" });
  expect((await me("GET")).json()).toEqual(changed.json());
  expect((await me("PATCH", { role: "admin" })).statusCode).toBe(422);
  expect((await me("PATCH", { timezone: "Nowhere" })).statusCode).toBe(422);
  expect((await me("GET")).body).not.toContain('"id"');
});

test("every change of where somebody is, is written down with who brought it", async () => {
  await admin("POST", "", { sub: "ada", timezone: "Europe/London" });
  const token = (
    await server.call("POST", "/api/1/admin/users/ada/access_token", { token: server.admin, body: {} })
  ).json().access_token;
  const own = (body: object) => server.call("PATCH", "/api/1/users/me", { token, body });
  expect((await own({ timezone: "Asia/Tokyo" })).json().timezone).toBe("Asia/Tokyo");
  expect((await own({ timezone: "Asia/Tokyo", given_name: "Ada" })).json()).toMatchObject({ given_name: "Ada" });
  expect((await admin("PATCH", "/ada", { timezone: "Europe/Paris" })).json().timezone).toBe("Europe/Paris");
  const first = (await admin("GET", "/ada/timezone_log?limit=1")).json();
  expect(first.items).toMatchObject([{ timezone: "Europe/Paris", source: "admin", style: null, guessed: false }]);
  const { items, next } = (await admin("GET", `/ada/timezone_log?before=${first.next}`)).json();
  expect(items).toMatchObject([{ timezone: "Asia/Tokyo", source: "profile", created_at: server.ctx.clock.now() }]);
  expect(next).toBeNull();
});

test("ids made later sort later and are version 7", () => {
  const ids = [1_772_000_000, 1_772_000_000.001, 1_772_000_001, 4_000_000_000].map(uuidAt);
  expect([...ids].sort()).toEqual(ids);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
