import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { Config, settings as kinds, type Setting } from "../../kernel/config.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";
import { confirmSubscriptions, openCatcher } from "../../sandbox/stage.fixture.ts";
import { settings as httpSettings } from "../../surfaces/http/settings.ts";
import { settings as accessSettings } from "../access/settings.ts";
import { sandbox as room } from "./index.ts";
import { errors, refuseSandbox, sandboxAddress, sandboxOf, startSandbox } from "./service.ts";
import { settings } from "./settings.ts";

const WEB = { web: true, worker: true };
let server: TestServer;
let sandbox: Sandbox;
let stop: () => Promise<void>;
const house = await openCatcher();
beforeAll(async () => {
  server = await openTestServer({
    domains: [room],
    settings: [
      [settings.port, 0],
      [settings.smtpPort, 0],
      [settings.publicUrl, house.url],
    ],
  });
  stop = await startSandbox(server.ctx, WEB);
  sandbox = sandboxOf(server.ctx);
});
afterAll(async () => {
  await stop();
  await server.close();
  await house.close();
});
beforeEach(() => {
  sandbox.inbox.clear();
  sandbox.knobs.reset();
  sandbox.twilio.stopped.clear();
  house.caught.length = 0;
});

const here = { host: "127.0.0.1:8787" };
const call = async (method: string, path: string, body?: unknown) => {
  const { statusCode, headers, payload } = await server.call(method, `/api/1/sandbox${path}`, { body, headers: here });
  const json = String(headers["content-type"]).includes("json");
  return { status: statusCode, body: json ? JSON.parse(payload) : payload, headers };
};
const PERSON = "+15551234567";
const text = () => {
  const { accountSid, authToken } = sandbox.twilio.account;
  return fetch(`${sandbox.url}/2010-04-01/Accounts/${accountSid}/Messages.json`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}` },
    body: new URLSearchParams({ To: PERSON, Body: "Breathe", MessagingServiceSid: "MG1" }),
  });
};
const mail = (at = sandbox, raw = "Subject: Hi\r\n\r\nYour code is 424242") =>
  fetch(`${at.url}/v2/email/outbound-emails`, {
    method: "POST",
    headers: {
      authorization: `AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/ses/aws4_request, SignedHeaders=host, Signature=${"0".repeat(64)}`,
      "x-amz-date": "20260101T000000Z",
    },
    body: JSON.stringify({
      FromEmailAddress: "hello@example.com",
      Destination: { ToAddresses: ["ada@example.com"] },
      Content: { Raw: { Data: Buffer.from(raw).toString("base64") } },
    }),
  });

describe("the inbox over HTTP", () => {
  it("lists, shows, downloads and forgets what was sent", async () => {
    await text();
    await mail();
    expect((await call("GET", "/messages")).body.items).toMatchObject([
      { id: expect.stringMatching(/^email-/), subject: "Hi", provider: "ses" },
      { channel: "sms", to: PERSON, text: "Breathe", status: "accepted" },
    ]);
    const { items } = (await call("GET", "/messages?channel=email&to=ADA")).body;
    expect(items).toHaveLength(1);
    const { id } = items[0];
    expect((await call("GET", `/messages/${id}`)).body).toMatchObject({
      mail: { code: "424242", html: null, headers: [{ name: "Subject", value: "Hi" }] },
      history: [{ status: "accepted", error: null }, { status: "delivered" }],
    });
    const raw = await call("GET", `/messages/${id}/raw`);
    expect(raw.body).toBe("Subject: Hi\r\n\r\nYour code is 424242");
    expect(raw.headers).toMatchObject({
      "content-type": "message/rfc822",
      "content-disposition": `attachment; filename="${id}.eml"`,
    });
    expect((await call("DELETE", `/messages/${id}`)).status).toBe(204);
    expect((await call("GET", `/messages/${id}`)).body.type).toBe("sandbox_message_unknown");
    expect((await call("DELETE", "/messages")).status).toBe(204);
    expect((await call("GET", "/messages")).body).toEqual({ items: [] });
  });

  it("answers under its short address too, and forgets from there", async () => {
    await text();
    await mail();
    const short = async (method: string, path: string, body?: unknown) =>
      server.call(method, `/sandbox/api/inbox${path}`, { headers: here, body });
    const since = sandbox.inbox.all()[0]!.at - 1;
    const listed = JSON.parse((await short("GET", `?to=ada&subject=hi&since=${since}`)).payload);
    expect(listed.items).toMatchObject([{ subject: "Hi", to: "ada@example.com" }]);
    const [{ id }] = listed.items;
    expect(JSON.parse((await short("GET", "/wait?to=ada&timeout=30")).payload)).toMatchObject({ id });
    const done = await short("POST", `/${id}/actions`, { action: "complain", feedback_type: "abuse" });
    expect([done.statusCode, JSON.parse(done.payload)]).toEqual([200, { answered: null }]);
    expect(JSON.parse((await short("GET", `/${id}`)).payload)).toMatchObject({ id, status: "complained" });
    expect((await short("DELETE", `/${id}`)).statusCode).toBe(204);
    expect((await short("GET", `/${id}`)).statusCode).toBe(404);
    expect((await short("DELETE", "")).statusCode).toBe(204);
    expect(sandbox.inbox.size).toBe(0);
  });

  it("answers a waiting caller as soon as the message is there", async () => {
    const waiting = call("GET", `/messages/wait?to=${encodeURIComponent(PERSON)}&timeout=30`);
    await text();
    expect((await waiting).body).toMatchObject({ to: PERSON, text: "Breathe" });
    expect((await call("GET", "/messages/wait?to=nobody&timeout=0")).status).toBe(204);
  });

  it("lets people reply, and refuses what cannot happen", async () => {
    await text();
    const { items } = (await call("GET", "/messages")).body;
    const reply = await call("POST", `/messages/${items[0].id}/actions`, { action: "reply", text: "STOP" });
    expect([reply.status, reply.body]).toEqual([200, { answered: 200 }]);
    expect(house.caught.map(({ path }) => path)).toContain("/api/1/sms/inbound_webhook");
    expect((await text()).status).toBe(400);
    expect((await call("GET", "")).body).toMatchObject({ twilio: { stopped: [PERSON] }, url: sandbox.url });
    const start = await call("POST", "/sms/inbound", { from: PERSON, body: "START" });
    expect(start.body).toEqual({ answered: 200 });
    expect((await text()).status).toBe(201);
    const bounce = await call("POST", `/messages/${items[0].id}/actions`, { action: "bounce" });
    expect([bounce.status, bounce.body.type]).toEqual([409, "sandbox_action_unfit"]);
    expect((await call("POST", `/messages/${items[0].id}/actions`, { action: "explode" })).status).toBe(422);
    expect((await call("POST", "/messages/sms-0/actions", { action: "deliver" })).status).toBe(404);
  });
});

describe("the people at the other end, over HTTP", () => {
  const people = async (method: string, path: string, body?: unknown) => {
    const answer = await server.call(method, `/sandbox/api/recipients/${path}`, { body, headers: here });
    return { status: answer.statusCode, body: JSON.parse(answer.payload) };
  };

  /** What people sent to the house; a provider's notices come in between whenever they are ready. */
  const sent = () => house.caught.filter(({ path }) => /^\/l\/|\/notifications\/|\/inbound_/.test(path));

  it("have what they got with the codes of its links, follow them, leave and answer", async () => {
    const raw = `Subject: Hi\r\n\r\nRead ${house.url}/l/abcd and https://example.com/l/efgh, leave with ${house.url}/l/ijkl`;
    await mail(sandbox, raw);
    expect((await people("GET", "ADA%40example.com")).body.items).toMatchObject([
      { channel: "email", to: "ada@example.com", codes: ["abcd", "efgh", "ijkl"] },
    ]);
    expect((await people("POST", "click", { code: "abcd", signed_in: "token" })).body.answered).toBe(200);
    expect(sent().slice(-2)).toMatchObject([
      { path: "/l/abcd", headers: { authorization: "Bearer token" } },
      { path: "/api/1/notifications/complete", body: '{"code":"abcd"}' },
    ]);
    expect((await people("POST", "click", { code: "../elsewhere" })).status).toBe(422);
    house.statusOf = ({ path, body }) => (body === "" ? 200 : path === "/l/efgh/unsubscribe" ? 202 : 403);
    expect((await people("POST", "ada@example.com/unsubscribe")).body).toEqual({ answered: 202 });
    expect(sent().at(-1)).toMatchObject({ path: "/l/efgh/unsubscribe", body: "email=ada%40example.com" });
    house.statusOf = () => 200;
    expect((await people("POST", "nobody@example.com/unsubscribe")).status).toBe(409);
    expect((await people("POST", `${PERSON}/text`, { text: "STOP" })).body).toEqual({ answered: 200 });
    expect(sent().at(-1)).toMatchObject({ path: "/api/1/sms/inbound_webhook" });
    expect(sandbox.twilio.stopped.has(PERSON)).toBe(true);
  });
});

describe("the inbox as a page", () => {
  it("is a page of the dashboard, and its old address leads there", async () => {
    const old = await server.call("GET", "/sandbox/inbox", { headers: here });
    expect([old.statusCode, old.headers.location]).toEqual([301, "/sandbox"]);
    // No test builds the pages for this: whoever is let in is told to.
    expect((await server.call("GET", "/sandbox", { headers: here })).payload).toContain("is not built");
    expect((await server.call("GET", "/sandbox", { headers: here, from: "10.1.1.1" })).statusCode).toBe(403);
    expect((await server.call("GET", "/sandbox", { headers: { host: "rebound.example.com" } })).statusCode).toBe(403);
  });

  it("is offered to administrators who could open it", async () => {
    const offered = async (from: string) =>
      (await server.call("GET", "/api/1/admin/sandbox", { headers: here, from, token: server.admin })).payload;
    expect(JSON.parse(await offered("127.0.0.1"))).toEqual({ can_open: true });
    expect(JSON.parse(await offered("10.1.1.1"))).toEqual({ can_open: false });
  });

  it("shows the HTML of a mail as a document in which nothing runs", async () => {
    const html = '<p style="color:red">Hi</p><script>alert(1)</script>';
    await mail(sandbox, `Subject: Hi\r\nContent-Type: text/html\r\n\r\n${html}`);
    const { id } = sandbox.inbox.all()[0]!;
    const shown = await call("GET", `/messages/${id}/html`);
    expect(shown.body).toContain(html);
    expect(shown.headers["content-security-policy"]).toMatch(/^sandbox allow-popups(?!.*script).*default-src 'none'/);
    expect(shown.headers["x-frame-options"]).toBe("SAMEORIGIN");
    await text();
    const bare = await call("GET", `/messages/${sandbox.inbox.all().at(-1)!.id}/html`);
    expect([bare.status, bare.body.type]).toEqual([404, "sandbox_message_unknown"]);
  });
});

describe("the house's subscription", () => {
  it("is asked for when the first mail is sent, and that mail is already reported", async () => {
    const listener = await openCatcher();
    confirmSubscriptions(listener);
    const config = server.ctx.config.with([settings.publicUrl, listener.url]);
    const end = await startSandbox({ ...server.ctx, config }, WEB);
    const fresh = sandboxOf({ config });
    expect(fresh.ses.topic.confirmed).toBe(false);
    await mail(fresh);
    await eventually(() => listener.caught.length === 2);
    expect(listener.caught.map(({ path, headers }) => [path, headers["x-amz-sns-message-type"]])).toEqual([
      ["/api/1/emails/sns-mail", "SubscriptionConfirmation"],
      ["/api/1/emails/sns-mail", "Notification"],
    ]);
    expect([fresh.ses.topic.confirmed, fresh.ses.topic.lost]).toEqual([true, 0]);
    await end();
    await listener.close();
  });
});

describe("the knobs over HTTP", () => {
  it("are read, changed at run time, checked, and reset", async () => {
    const patched = await call("PATCH", "/knobs", { twilio: { failNext: { status: 503, count: 1 } } });
    expect([patched.status, patched.body.twilio.failNext]).toEqual([200, { status: 503, count: 1 }]);
    expect([(await text()).status, (await text()).status]).toEqual([503, 201]);
    expect((await call("GET", "/knobs")).body.twilio.failNext.count).toBe(0);
    expect((await call("PATCH", "/knobs", { twilio: { errorRate: 7 } })).status).toBe(422);
    expect((await call("PATCH", "/knobs", { twilio: { erorRate: 0.1 } })).status).toBe(422);
    expect((await call("DELETE", "/knobs")).body.twilio.failNext).toBeNull();
  });
});

describe("the faults of one provider over HTTP", () => {
  const put = (provider: string, body: unknown) =>
    server.call("PUT", `/sandbox/api/${provider}/faults`, { body, headers: here });

  it("are set as a whole, and a name that is none is refused with the names that there are", async () => {
    const set = await put("ses", { error: "throttle", fail_next: 2, fault_rates: { "500": 0.1, reset: 0.1 } });
    expect(JSON.parse(set.payload).ses).toMatchObject({ error: "throttle", fail_next: 2, latency_ms: 0 });
    expect((await mail()).status).toBe(429);
    expect(JSON.parse((await put("ses", { latency_ms: 1 })).payload).ses).toMatchObject({
      fail_next: 0,
      fault_rates: {},
    });
    const refused = await put("twilio", { sunshine: true });
    expect([refused.statusCode, JSON.parse(refused.payload).type]).toEqual([422, "sandbox_knob_unknown"]);
    expect((await put("carrier", {})).statusCode).toBe(422);
  });
});

describe("who may call the sandbox", () => {
  const status = async (headers: Record<string, string>, from = "127.0.0.1") =>
    (await server.call("GET", "/api/1/sandbox/knobs", { headers, from })).statusCode;

  it("are callers on this machine, without a proxy, a foreign name or a foreign page in between", async () => {
    expect(await status(here)).toBe(200);
    expect(await status({ host: "localhost:8787", origin: "http://localhost:3000" })).toBe(200);
    expect(await status(here, "::1")).toBe(200);
    expect(await status(here, "192.168.1.9")).toBe(403);
    expect(await status({ ...here, "x-forwarded-for": "203.0.113.9" })).toBe(403);
    expect(await status({ host: "rebound.example.com" })).toBe(403);
    expect(await status({ ...here, origin: "https://evil.example.com" })).toBe(403);
  });

  it("find no route open to others", async () => {
    for (const { method, path } of room.routes ?? []) {
      const body =
        method === "POST" ? { action: "deliver", from: PERSON, body: "x" } : /^P/.test(method) ? {} : undefined;
      const address = path.replace("{id}", "sms-1").replace("{provider}", "ses");
      const { statusCode } = await server.call(method, address, { headers: here, from: "10.1.1.1", body });
      // A body that does not fit is refused before anybody asks where it came from, and so is who must be an administrator.
      expect([path, [401, 403, 422].includes(statusCode)]).toEqual([path, true]);
    }
  });
});

describe("where the sandbox may be used", () => {
  const config = (...overrides: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[]) =>
    new Config([]).with([accessSettings.rootSecret, "a root secret for tests, long enough"], ...overrides);
  const anyPort = [
    [settings.port, 0],
    [settings.smtpPort, 0],
  ] as const;
  const start = (settled: Config, roles = WEB) => startSandbox({ ...server.ctx, config: settled }, roles);
  const runs = async (settled: Config, roles = WEB) => {
    const end = await start(settled, roles);
    try {
      return sandboxOf({ config: settled }) instanceof Sandbox;
    } catch (error) {
      if (errors.sandbox_off.matches(error)) return false;
      throw error;
    } finally {
      await end();
    }
  };
  const production = [accessSettings.environment, "production"] as const;
  const exposed = [httpSettings.host, "0.0.0.0"] as const;

  it("is development on this machine, and elsewhere it stays off by itself", async () => {
    expect(await runs(config(...anyPort))).toBe(true);
    expect(await runs(config(...anyPort, production))).toBe(false);
    expect(await runs(config(...anyPort, exposed))).toBe(false);
    expect(await runs(config(...anyPort, [settings.enabled, "false"]))).toBe(false);
    expect(await runs(config(...anyPort), { web: false, worker: true })).toBe(false);
  });

  it("is nowhere else: a start that insists on it fails, unless it is allowed", async () => {
    const insisting = [settings.enabled, "true"] as const;
    for (const where of [production, exposed]) {
      await expect(start(config(...anyPort, insisting, where))).rejects.toMatchObject({ code: "sandbox_not_allowed" });
      expect(await runs(config(...anyPort, insisting, where, [settings.allowed, true]))).toBe(true);
    }
    expect(() => refuseSandbox(config(production), ["sms"])).toThrow(/sms.*production/);
    expect(() => refuseSandbox(config(exposed), ["email"])).toThrow(/0\.0\.0\.0/);
    expect(() => refuseSandbox(config(production), [])).not.toThrow();
    expect(() => refuseSandbox(config(), ["sms"])).not.toThrow();
  });

  it("is told apart by the account of its texts, which follows from the root secret", async () => {
    const { accountSid, authToken } = sandbox.twilio.account;
    expect(accountSid).toMatch(/^AC[0-9a-f]{32}$/);
    expect(authToken).toMatch(/^[0-9a-f]{32}$/);
    expect(sandboxAddress(server.ctx.config)).toMatchObject({ url: sandbox.url, twilio: { accountSid, authToken } });
    expect(sandboxAddress(config()).url).toBe("http://127.0.0.1:8790");
    const other = config(...anyPort, [accessSettings.rootSecret, "another root secret, also long enough"]);
    const end = await start(other);
    expect(sandboxOf({ config: other }).twilio.account.authToken).not.toBe(authToken);
    await end();
  });

  it("is found by other processes where it really answers, as long as its process lives", async () => {
    const folder = mkdtempSync(join(tmpdir(), "carillon-announced-"));
    const dataDir = kinds.text("data.dir", { default: "", doc: "a folder" });
    const here = config(...anyPort, [dataDir, folder]);
    const end = await start(here);
    const elsewhere = config([dataDir, folder]);
    expect(sandboxAddress(elsewhere).url).toBe(sandboxOf({ config: here }).url);
    const file = join(folder, "sandbox", "address.json");
    const { url } = JSON.parse(readFileSync(file, "utf8"));
    const dead = spawnSync("true").pid;
    for (const content of [
      JSON.stringify({ url, pid: dead }),
      JSON.stringify({ url: "?", pid: process.pid }),
      "half",
    ]) {
      writeFileSync(file, content);
      expect(sandboxAddress(elsewhere).url).toBe("http://127.0.0.1:8790");
    }
    writeFileSync(file, JSON.stringify({ url, pid: process.pid }));
    await end();
    expect(existsSync(file)).toBe(false);
    rmSync(folder, { recursive: true });
  });

  it("finds other ports when its own are taken", async () => {
    const taken = config([settings.port, Number(new URL(sandbox.url).port)], [settings.smtpPort, 0]);
    const end = await start(taken);
    expect(sandboxOf({ config: taken }).url).not.toBe(sandbox.url);
    await end();
    expect(server.logged()).toContain("the ports of the sandbox are taken");
  });
});
