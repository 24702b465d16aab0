import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { listAudit, signToken } from "../../infrastructure/access/service.ts";
import type { AccessTables } from "../../infrastructure/access/tables.ts";
import type { UserTables } from "../../people/users/tables.ts";

const handle = (_ctx: unknown, request: { caller: unknown }) => ({ status: 200, body: request.caller });

const rooms = domain({
  name: "rooms",
  routes: [
    route({ method: "GET", path: "/api/1/open", access: "public", summary: "Anybody", handle }),
    route({ method: "GET", path: "/api/1/own", access: "user", summary: "Users", handle }),
    route({ method: "POST", path: "/api/1/own", access: "user", summary: "Users change", handle }),
    route({ method: "GET", path: "/api/1/keyed", access: "token", summary: "Checks a token of its own", handle }),
    route({ method: "GET", path: "/api/1/admin/rooms", access: "admin", summary: "Admins", handle }),
    route({
      method: "PUT",
      path: "/api/1/admin/rooms/{room}/{door}",
      access: "admin",
      summary: "Admins change",
      schemas: {
        params: z.object({ room: z.string(), door: z.string() }),
        body: z.object({ colour: z.string(), lock: z.object({ secret: z.string(), access_token: z.string() }) }),
      },
      handle,
    }),
  ],
});

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ domains: [rooms] });
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.ctx.flush();
  await server.ctx.sql.tables<UserTables>().deleteFrom("users").execute();
  await server.ctx.sql.tables<AccessTables>().deleteFrom("admin_audit_log").execute();
});

const outcome = async (method: string, path: string, token?: string, headers?: Record<string, string>) => {
  const reply = await server.call(method, path, { token, headers });
  return `${reply.statusCode} ${reply.json().type ?? "ok"}`;
};

async function newUser(role = "user"): Promise<{ sub: string; token: string }> {
  const created = await server.call("POST", "/api/1/admin/users", { token: server.admin, body: { role } });
  const { sub } = created.json();
  return { sub, token: await mint(sub) };
}

async function mint(sub: string, body?: object): Promise<string> {
  const reply = await server.call("POST", `/api/1/admin/users/${sub}/access_token`, { token: server.admin, body });
  return reply.json().access_token;
}

const everyRoute = () => server.domains.flatMap(({ routes = [] }) => routes);
const concrete = (path: string) => path.replaceAll(/\{[^}]+\}/g, "someone");

test("every admin route refuses a caller without a token, whatever else is wrong with the call", async () => {
  const guarded = everyRoute().filter(({ access }) => access === "admin");
  expect(guarded.length).toBeGreaterThan(10);
  for (const { method, path } of guarded)
    expect([path, await outcome(method, concrete(path))]).toEqual([path, "401 credential_missing"]);
});

test("every admin route refuses a user's token with 403", async () => {
  const { token } = await newUser("organizer");
  for (const { method, path, access } of everyRoute())
    if (access === "admin")
      expect([path, await outcome(method, concrete(path), token)]).toEqual([path, "403 not_allowed"]);
});

test("a refused credential names its fault and asks for a bearer token", async () => {
  const reply = await server.call("GET", "/api/1/own");
  expect(reply.headers["www-authenticate"]).toMatch(/^Bearer/);
  const expired = await signToken(server.ctx, { audience: "carillon-access", subject: "someone", expiresIn: -1 });
  const elsewhere = await signToken(server.ctx, {
    audience: "carillon-file-upload",
    subject: "someone",
    expiresIn: 60,
  });
  const ghost = await signToken(server.ctx, { audience: "carillon-access", subject: "someone", expiresIn: 60 });
  for (const [token, expected] of [
    [expired, "401 credential_expired"],
    [elsewhere, "401 credential_invalid"],
    [ghost, "401 credential_revoked"],
    ["crl_admin_short", "401 credential_invalid"],
    [`crl_admin_${"x".repeat(22)}`, "401 credential_invalid"],
    ["not.a.jwt", "401 credential_invalid"],
    [unsigned("someone"), "401 credential_invalid"],
  ] as const)
    for (const path of ["/api/1/own", "/api/1/admin/rooms"]) expect(await outcome("GET", path, token)).toBe(expected);
  for (const authorization of ["Basic YTpi", "Bearer", "Bearer a b"])
    expect(await outcome("GET", "/api/1/own", undefined, { authorization })).toBe("401 credential_invalid");
});

/** A token of a user that nobody signed, as it was once accepted by careless libraries. */
function unsigned(sub: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ sub, iss: "carillon", aud: "carillon-access", iat: 1, exp: 9e9, jti: "a" })}.`;
}

test("an admin token reaches admin routes and no user's own; a user's token the reverse", async () => {
  const { sub, token } = await newUser();
  expect(await outcome("GET", "/api/1/admin/rooms", server.admin)).toBe("200 ok");
  expect(await outcome("GET", "/api/1/own", server.admin)).toBe("403 not_allowed");
  const own = await server.call("GET", "/api/1/own", { token });
  expect(own.json()).toEqual({ sub, role: "user", address: "127.0.0.1" });
});

test("the role is the one in the table, and a change of role ends the tokens from before", async () => {
  const { sub, token } = await newUser("admin");
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("200 ok");
  await server.ctx.clock.advance(1);
  await server.call("PATCH", `/api/1/admin/users/${sub}`, { token: server.admin, body: { role: "user" } });
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("401 credential_revoked");
  const later = await mint(sub);
  expect(await outcome("GET", "/api/1/own", later)).toBe("200 ok");
  expect(await outcome("GET", "/api/1/admin/rooms", later)).toBe("403 not_allowed");
});

test("a role taken away behind this process's back counts at once for changes and within a minute for reading", async () => {
  const { sub, token } = await newUser("admin");
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("200 ok");
  await server.ctx.sql.tables<UserTables>().updateTable("users").set({ role: "user" }).where("sub", "=", sub).execute();
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("200 ok");
  expect(await outcome("POST", "/api/1/admin/tokens", token)).toBe("403 not_allowed");
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("403 not_allowed");
  await server.ctx.sql
    .tables<UserTables>()
    .updateTable("users")
    .set({ role: "admin" })
    .where("sub", "=", sub)
    .execute();
  await server.ctx.clock.advance(61);
  expect(await outcome("GET", "/api/1/admin/rooms", token)).toBe("200 ok");
});

test("a token lives as long as it was minted for, and not beyond its user", async () => {
  const { sub } = await newUser();
  const token = await mint(sub, { expires_in: 120 });
  await server.ctx.clock.advance(119);
  expect(await outcome("GET", "/api/1/own", token)).toBe("200 ok");
  await server.ctx.clock.advance(2);
  expect(await outcome("GET", "/api/1/own", token)).toBe("401 credential_expired");
  const last = await mint(sub);
  await server.call("DELETE", `/api/1/admin/users/${sub}`, { token: server.admin });
  expect(await outcome("GET", "/api/1/own", last)).toBe("401 credential_revoked");
});

test("all tokens of a user can be ended at once", async () => {
  const { sub, token } = await newUser();
  await server.ctx.clock.advance(1);
  const revoked = await server.call("POST", `/api/1/admin/users/${sub}/revoke_tokens`, { token: server.admin });
  expect(revoked.statusCode).toBe(204);
  expect(await outcome("GET", "/api/1/own", token)).toBe("401 credential_revoked");
  expect(await outcome("GET", "/api/1/own", await mint(sub))).toBe("200 ok");
});

test("a revoked admin token is refused at once", async () => {
  const made = (
    await server.call("POST", "/api/1/admin/tokens", { token: server.admin, body: { label: "ci" } })
  ).json();
  expect(await outcome("GET", "/api/1/admin/rooms", made.token)).toBe("200 ok");
  const gone = await server.call("DELETE", `/api/1/admin/tokens/${made.uid}`, { token: server.admin });
  expect(gone.statusCode).toBe(204);
  expect(await outcome("GET", "/api/1/admin/rooms", made.token)).toBe("401 credential_revoked");
  expect(await outcome("DELETE", `/api/1/admin/tokens/${made.uid}`, server.admin)).toBe("404 admin_token_not_found");
});

test("public routes know a caller who shows a token and serve one whose token is worthless", async () => {
  const { sub, token } = await newUser();
  expect((await server.call("GET", "/api/1/open", { token })).json()).toMatchObject({ sub, role: "user" });
  expect((await server.call("GET", "/api/1/open", { token: "nonsense" })).json()).toMatchObject({ role: "anonymous" });
  expect((await server.call("GET", "/api/1/keyed", { token })).json()).toMatchObject({ role: "anonymous" });
});

test("each change by an administrator leaves one audit row without secrets; readings and refusals leave none", async () => {
  const { sub, token } = await newUser("admin");
  await server.ctx.sql.tables<AccessTables>().deleteFrom("admin_audit_log").execute();
  await server.call("GET", "/api/1/admin/rooms", { token });
  const body = { colour: "red", lock: { secret: "s3cr3t-value", access_token: "t0k3n-value" } };
  await server.call("PUT", "/api/1/admin/rooms/blue/7", { token, body: { colour: 1 } });
  await server.call("POST", "/api/1/own", { token, body });
  expect((await listAudit(server.ctx, { limit: 10 })).entries).toEqual([]);
  const headers = { "x-request-id": "audited" };
  expect((await server.call("PUT", "/api/1/admin/rooms/blue/7", { token, body, headers })).statusCode).toBe(200);
  const page = await server.call("GET", "/api/1/admin/audit_log", { token: server.admin });
  expect(page.json()).toEqual({
    items: [
      {
        id: expect.any(Number),
        admin: sub,
        action: "PUT /api/1/admin/rooms/{room}/{door}",
        target: "room=blue door=7",
        detail: {
          status: 200,
          request_id: "audited",
          address: "127.0.0.1",
          query: {},
          body: { colour: "red", lock: { secret: "[redacted]", access_token: "[redacted]" } },
        },
        created_at: server.ctx.clock.now(),
      },
    ],
    next: null,
  });
});

test("an audit row that cannot be written is told to people and does not deny the change", async () => {
  const { token } = await newUser("admin");
  await server.ctx.sql.script("alter table admin_audit_log rename to hidden_log");
  try {
    const body = { colour: "red", lock: { secret: "a", access_token: "b" } };
    expect((await server.call("PUT", "/api/1/admin/rooms/blue/7", { token, body })).statusCode).toBe(200);
    expect(server.ctx.alerts.identifiers()).toContain("access:audit_not_written");
  } finally {
    await server.ctx.sql.script("alter table hidden_log rename to admin_audit_log");
  }
});

test("an administrator makes at most 60 changes a minute, each counted by themselves", async () => {
  const one = await newUser("admin");
  const other = await newUser("admin");
  const change = (token: string) => outcome("PUT", "/api/1/admin/rooms/a/b", token);
  const first = await Promise.all(Array.from({ length: 60 }, () => change(one.token)));
  expect(new Set(first)).toEqual(new Set(["422 invalid_request"]));
  await server.ctx.clock.advance(20);
  const refused = await server.call("PUT", "/api/1/admin/rooms/a/b", { token: one.token });
  expect([refused.statusCode, refused.json().type]).toEqual([429, "too_many_admin_writes"]);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(30);
  expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(40);
  expect(await outcome("GET", "/api/1/admin/rooms", one.token)).toBe("200 ok");
  expect(await change(other.token)).toBe("422 invalid_request");
  await server.ctx.clock.advance(41);
  expect(await change(one.token)).toBe("422 invalid_request");
});

test("no credential ever reaches the log", async () => {
  const { sub, token } = await newUser("admin");
  const made = (await server.call("POST", "/api/1/admin/tokens", { token, body: { label: "log" } })).json();
  await server.call("GET", `/api/1/own?jwt=${token}`, { token });
  await server.call("GET", `/api/1/admin/users/${sub}`, { token: made.token });
  await server.call("POST", "/api/1/admin/users", { token: `${token}broken`, body: { password: "hunter2" } });
  expect(server.logged()).toContain("/api/1/admin/users/:sub");
  for (const secret of [token, made.token, server.admin, "hunter2", "s3cr3t-value", "a root secret for tests"])
    expect(server.logged()).not.toContain(secret);
});
