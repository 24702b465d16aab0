import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { settings as httpSettings } from "../../surfaces/http/settings.ts";
import { errors, issueSignInLink, listAudit, listSessions, rememberServerUrl } from "./service.ts";
import { settings } from "./settings.ts";

const rooms = domain({
  name: "rooms",
  routes: [
    route({
      method: "GET",
      path: "/api/1/admin/rooms",
      access: "admin",
      summary: "Admins",
      handle: (_ctx, { caller }) => ({ status: 200, body: caller }),
    }),
    route({
      method: "POST",
      path: "/api/1/admin/rooms",
      access: "admin",
      summary: "Admins change",
      handle: () => ({ status: 200, body: {} }),
    }),
    route({
      method: "GET",
      path: "/api/1/own",
      access: "user",
      summary: "Users",
      handle: () => ({ status: 200, body: {} }),
    }),
  ],
});

const HOST = "bells.example.com:8787";
const ORIGIN = `http://${HOST}`;
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ domains: [rooms] });
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.ctx.flush();
  await rememberServerUrl(server.ctx, ORIGIN);
});

const linkSecret = async () => (await issueSignInLink(server.ctx, { label: "test" })).url.split("#")[1]!;

const exchange = (token: string, headers: Record<string, string> = {}) =>
  server.call("POST", "/api/1/admin/session", { body: { token }, headers: { host: HOST, origin: ORIGIN, ...headers } });

async function signIn() {
  const reply = await exchange(await linkSecret());
  const [cookie = ""] = String(reply.headers["set-cookie"]).split(";");
  return { cookie, ...(reply.json() as { csrf_token: string; session: { uid: string } }), reply };
}

const outcome = async (method: string, path: string, headers: Record<string, string>) => {
  const reply = await server.call(method, path, { headers: { host: HOST, ...headers } });
  return `${reply.statusCode} ${(reply.body ? reply.json().type : undefined) ?? "ok"}`;
};

test("a sign-in link opens a session whose cookie reaches admin routes and nothing else", async () => {
  const link = await issueSignInLink(server.ctx, { label: "Ada's laptop" });
  const [address, secret] = link.url.split("#") as [string, string];
  expect(address).toBe(`${ORIGIN}/admin/sign-in`);
  const reply = await exchange(secret, { "user-agent": "Test browser" });
  expect(reply.statusCode).toBe(201);
  expect(reply.json()).toMatchObject({
    session: { label: "Ada's laptop", address: "127.0.0.1", user_agent: "Test browser" },
    statistics_timezone: "America/Los_Angeles",
  });
  const cookie = String(reply.headers["set-cookie"]).split(";")[0]!;
  const { uid } = reply.json().session;
  const room = await server.call("GET", "/api/1/admin/rooms", { headers: { cookie } });
  expect(room.json()).toEqual({ sub: uid, role: "admin", address: "127.0.0.1" });
  expect(await outcome("GET", "/api/1/own", { cookie })).toBe("401 credential_missing");
  const { entries } = await listAudit(server.ctx, { limit: 1 });
  expect(entries[0]).toMatchObject({ admin: uid, action: "POST /api/1/admin/session" });
});

test("the session cookie cannot be read by scripts, sent by other sites or met outside admin routes", async () => {
  const { reply } = await signIn();
  const flags = String(reply.headers["set-cookie"]).split("; ").slice(1);
  expect(flags.sort()).toEqual(["HttpOnly", "Max-Age=604800", "Path=/api/1/admin", "SameSite=Strict"]);
  const { trustedProxies } = httpSettings;
  const behind = await server.another({ settings: [[trustedProxies, ["loopback"]]] });
  const secured = await behind.inject({
    method: "POST",
    url: "/api/1/admin/session",
    headers: { host: HOST, origin: `https://${HOST}`, "x-forwarded-proto": "https" },
    payload: { token: await linkSecret() },
  });
  expect(String(secured.headers["set-cookie"])).toMatch(/; Secure$/);
});

test("a sign-in link works for the first who uses it and for nobody after", async () => {
  const secret = await linkSecret();
  const replies = await Promise.all(Array.from({ length: 8 }, () => exchange(secret)));
  expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([201, ...Array(7).fill(403)]);
  expect((await exchange(secret)).json()).toMatchObject({
    type: "sign_in_link_invalid",
    hint: expect.stringContaining("carillon admin login"),
  });
  expect(await listSessions(server.ctx)).toHaveLength(1);
});

test("a sign-in link that nobody used in time, or that was not copied whole, signs nobody in", async () => {
  const secret = await linkSecret();
  expect((await exchange(secret.slice(0, -1))).json().type).toBe("sign_in_link_invalid");
  await server.ctx.clock.advance(server.ctx.config.get(settings.signInLinkLifetime) + 1);
  expect((await exchange(secret)).json().type).toBe("sign_in_link_invalid");
});

test("a foreign page cannot use a sign-in link", async () => {
  const secret = await linkSecret();
  expect((await exchange(secret, { origin: "https://evil.example" })).json().type).toBe("foreign_page");
  expect((await exchange(secret, { "sec-fetch-site": "cross-site" })).json().type).toBe("foreign_page");
  expect((await exchange(secret)).statusCode).toBe(201);
});

test("a change by cookie needs the token of its session and the origin of this server; reading needs neither", async () => {
  const { cookie, csrf_token } = await signIn();
  const other = await signIn();
  const good = { cookie, origin: ORIGIN, "x-csrf-token": csrf_token };
  const change = (headers: Record<string, string>) => outcome("POST", "/api/1/admin/rooms", headers);
  expect(await change(good)).toBe("200 ok");
  expect(await change({ cookie, origin: ORIGIN })).toBe("403 foreign_page");
  expect(await change({ ...good, "x-csrf-token": other.csrf_token })).toBe("403 foreign_page");
  expect(await change({ ...good, origin: "https://evil.example" })).toBe("403 foreign_page");
  expect(await change({ ...good, origin: "null" })).toBe("403 foreign_page");
  expect(await change({ cookie, "x-csrf-token": csrf_token })).toBe("403 foreign_page");
  expect(await change({ ...good, "sec-fetch-site": "same-site" })).toBe("403 foreign_page");
  expect(await change({ authorization: `Bearer ${server.admin}`, cookie })).toBe("200 ok");
  expect(await outcome("GET", "/api/1/admin/rooms", { cookie })).toBe("200 ok");
});

test("a reloaded page learns its token again, and nobody else learns one", async () => {
  const { cookie, csrf_token, session } = await signIn();
  const reloaded = await server.call("GET", "/api/1/admin/session", { headers: { cookie } });
  expect(reloaded.json()).toMatchObject({ csrf_token, session: { uid: session.uid } });
  for (const call of [{ token: server.admin }, {}, { headers: { cookie: "carillon_session=crl_session_guess" } }]) {
    const other = await server.call("GET", "/api/1/admin/session", call);
    expect(other.json()).toMatchObject({ csrf_token: null, session: null });
  }
});

test("signing out ends the session at once and takes the cookie away", async () => {
  const { cookie, csrf_token } = await signIn();
  const reply = await server.call("DELETE", "/api/1/admin/session", {
    headers: { host: HOST, origin: ORIGIN, cookie, "x-csrf-token": csrf_token },
  });
  expect([reply.statusCode, String(reply.headers["set-cookie"])]).toEqual([
    204,
    expect.stringMatching(/^carillon_session=; .*Max-Age=0/),
  ]);
  expect(await outcome("GET", "/api/1/admin/rooms", { cookie })).toBe("401 session_ended");
});

test("sessions are listed, and one that an administrator revokes ends while the others stay", async () => {
  const first = await signIn();
  await server.ctx.clock.advance(120);
  const second = await signIn();
  await server.call("GET", "/api/1/admin/rooms", { headers: { cookie: first.cookie } });
  const listed = await server.call("GET", "/api/1/admin/sessions", { token: server.admin });
  expect(listed.json().items).toMatchObject([
    { uid: second.session.uid },
    { uid: first.session.uid, last_used_at: server.ctx.clock.now() },
  ]);
  expect(listed.body).not.toMatch(/crl_session_|secret/);
  const revoke = `/api/1/admin/sessions/${first.session.uid}`;
  expect((await server.call("DELETE", revoke, { token: server.admin })).statusCode).toBe(204);
  expect(await outcome("GET", "/api/1/admin/rooms", { cookie: first.cookie })).toBe("401 session_ended");
  expect(await outcome("GET", "/api/1/admin/rooms", { cookie: second.cookie })).toBe("200 ok");
  expect((await server.call("DELETE", revoke, { token: server.admin })).json().type).toBe("session_not_found");
});

test("a session ends by itself, leaves nothing in Redis, and its secret is kept nowhere", async () => {
  const { cookie } = await signIn();
  const { commands } = server.ctx.redis;
  const names = (await commands.keys("access:session*")).sort();
  const kept = await Promise.all(names.map((name) => commands.dump(name).then(String)));
  expect(names).toHaveLength(2);
  expect(kept.join()).not.toContain(cookie.split("=")[1]);
  expect(server.logged()).not.toMatch(/crl_(session|link)_/);
  await server.ctx.clock.advance(server.ctx.config.get(settings.sessionLifetime) + 1);
  expect(await outcome("GET", "/api/1/admin/rooms", { cookie })).toBe("401 session_ended");
  expect(await commands.keys("access:session*")).toEqual([]);
});

test("no sign-in link is made while nobody knows where the dashboard is, unless a setting says it", async () => {
  await server.ctx.flush();
  await expect(issueSignInLink(server.ctx, { label: "x" })).rejects.toSatisfy(errors.dashboard_nowhere.matches);
  const config = server.ctx.config.with([settings.dashboardUrl, "https://bells.example.com"]);
  const elsewhere = Object.create(server.ctx, { config: { value: config } }) as typeof server.ctx;
  const { url } = await issueSignInLink(elsewhere, { label: "x" });
  expect(url).toMatch(/^https:\/\/bells\.example\.com\/admin\/sign-in#crl_link_/);
});
