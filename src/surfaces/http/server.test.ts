import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { defineErrors, kernelErrors } from "../../kernel/errors.ts";
import { httpSettings } from "./index.ts";

const ORIGIN = "https://app.example.com";
const SECRET_IN_ERROR = "crl_admin_thisWasInAnErrorMessage";
const refusals = defineErrors({
  backpressure: { status: 503, doc: "The queue is full.", hint: "Try again later." },
  already_there: { status: 409, doc: "It is already there." },
});

const answer = (path: string, handle: () => never) =>
  route({ method: "GET", path, access: "public", summary: `Answers ${path}`, handle });

const playground = domain({
  name: "playground",
  routes: [
    route({
      method: "POST",
      path: "/api/1/echo/{name}",
      access: "public",
      summary: "Echo",
      schemas: {
        params: z.object({ name: z.string().min(2) }),
        query: z.object({ times: z.coerce.number().int().max(3).default(1) }),
        body: z.strictObject({ text: z.string(), items: z.array(z.object({ at: z.number() })).default([]) }),
      },
      responses: { 200: z.object({ name: z.string(), text: z.string(), times: z.number() }) },
      handle: (_ctx, { params, query, body }) => ({
        status: 200,
        body: { name: params.name, text: body.text, times: query.times, internal: "left out by the schema" },
        headers: { "x-echo": "yes" },
      }),
    }),
    route({
      method: "POST",
      path: "/api/1/tiny",
      access: "public",
      summary: "Takes little",
      bodyLimit: 64,
      handle: (_ctx, { body }) => ({ status: 200, body }),
    }),
    route({
      method: "POST",
      path: "/api/1/bytes",
      access: "public",
      summary: "Counts bytes",
      consumes: "raw",
      handle: (_ctx, { body }) => ({ status: 200, body: { bytes: (body as unknown as Buffer).length } }),
    }),
    route({
      method: "POST",
      path: "/api/1/files",
      access: "public",
      summary: "Takes a file",
      consumes: "multipart",
      bodyLimit: 1000,
      handle: async (_ctx, { raw }) => {
        const part = await (raw as { file(): Promise<{ filename: string; toBuffer(): Promise<Buffer> }> }).file();
        return { status: 202, body: { name: part.filename, bytes: (await part.toBuffer()).length } };
      },
    }),
    route({
      method: "GET",
      path: "/api/1/whoami",
      access: "public",
      summary: "Says who calls",
      handle: (_ctx, { caller, id }) => ({ status: 200, body: { ...caller, id } }),
    }),
    answer("/api/1/fails/bug", () => {
      throw Object.assign(new Error(`no such column: salary of ${SECRET_IN_ERROR}`), { params: ["hunter2"] });
    }),
    answer("/api/1/fails/wrong_type", () => {
      throw kernelErrors.wrong_type({ message: "the key secret:key is a list" });
    }),
    answer("/api/1/fails/busy", () => {
      throw refusals.backpressure({ retryAfter: 9.2, detail: { length: 100 } });
    }),
    answer("/api/1/fails/conflict", () => {
      throw refusals.already_there();
    }),
    answer("/api/1/fails/oom", () => {
      throw new Error("OOM command not allowed when used memory > 'maxmemory'.");
    }),
    answer("/api/1/fails/redis", () => {
      throw new Error("Connection is closed.");
    }),
    answer("/api/1/fails/sql", () => {
      throw Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:5432"), { code: "ECONNREFUSED" });
    }),
    answer("/api/1/fails/unknown", () => {
      throw kernelErrors.outcome_unknown({ message: "the reply to jobs.push was lost" });
    }),
    route({
      method: "GET",
      path: "/api/1/fails/answer",
      access: "public",
      summary: "Breaks its own promise",
      responses: { 200: z.object({ count: z.number() }) },
      handle: () => ({ status: 200, body: { count: "many" } }),
    }),
  ],
});

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({
    domains: [playground],
    settings: [
      [httpSettings.allowedOrigins, [ORIGIN]],
      [httpSettings.bodyLimit, 4096],
    ],
  });
});
afterAll(() => server.close());

const echo = (body: unknown, options: { path?: string; headers?: Record<string, string> } = {}) =>
  server.call("POST", options.path ?? "/api/1/echo/bell?times=2", { body, headers: options.headers });

test("a request reaches its handler with parsed values and the answer keeps to its schema", async () => {
  const reply = await echo({ text: "ding" });
  expect(reply.statusCode).toBe(200);
  expect(reply.json()).toEqual({ name: "bell", text: "ding", times: 2 });
  expect(reply.headers["x-echo"]).toBe("yes");
});

test("a value that does not fit the schema is refused with 422 and the path to it", async () => {
  const reply = await echo({ text: "ding", items: [{ at: 1 }, { at: "noon" }] });
  expect(reply.statusCode).toBe(422);
  expect(reply.json()).toMatchObject({
    type: "invalid_request",
    message: expect.stringMatching(/^body\.items\.1\.at: /),
    hint: expect.any(String),
    detail: [{ in: "body", path: "items.1.at", message: expect.any(String) }],
    request_id: reply.headers["x-request-id"],
  });
  const query = await echo({ text: "ding" }, { path: "/api/1/echo/bell?times=9" });
  expect(query.json().detail).toMatchObject([{ in: "query", path: "times" }]);
  const params = await echo({ text: "ding" }, { path: "/api/1/echo/b" });
  expect(params.json().detail).toMatchObject([{ in: "params", path: "name" }]);
  const nothing = await server.call("POST", "/api/1/echo/bell");
  expect([nothing.statusCode, nothing.json().type]).toEqual([422, "invalid_request"]);
});

test("malformed JSON is 400, a foreign content type 415, and neither reaches the handler", async () => {
  const json = { "content-type": "application/json" };
  const malformed = await echo('{"text": ', { headers: json });
  expect([malformed.statusCode, malformed.json().type]).toEqual([400, "malformed_json"]);
  const poisoned = await echo('{"text":"a","__proto__":{"admin":true}}', { headers: json });
  expect([poisoned.statusCode, poisoned.json().type]).toEqual([400, "malformed_json"]);
  const xml = await echo("<text/>", { headers: { "content-type": "application/xml" } });
  expect([xml.statusCode, xml.json().type]).toEqual([415, "unsupported_media_type"]);
});

test("a body beyond the limit of the server or of the route is 413", async () => {
  const large = await echo({ text: "x".repeat(5000) });
  expect([large.statusCode, large.json().type]).toEqual([413, "body_too_large"]);
  const tiny = await server.call("POST", "/api/1/tiny", { body: { text: "x".repeat(70) } });
  expect([tiny.statusCode, tiny.json().type]).toEqual([413, "body_too_large"]);
  expect((await server.call("POST", "/api/1/tiny", { body: { a: 1 } })).statusCode).toBe(200);
});

test("raw and multipart routes read bodies that no other route takes", async () => {
  const raw = await server.call("POST", "/api/1/bytes", {
    body: Buffer.alloc(300),
    headers: { "content-type": "image/png" },
  });
  expect(raw.json()).toEqual({ bytes: 300 });
  const multipart = (bytes: number) => {
    const body = `--edge\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${"a".repeat(bytes)}\r\n--edge--\r\n`;
    return {
      body,
      headers: { "content-type": "multipart/form-data; boundary=edge", "content-length": `${body.length}` },
    };
  };
  const file = await server.call("POST", "/api/1/files", multipart(500));
  expect([file.statusCode, file.json()]).toEqual([202, { name: "a.txt", bytes: 500 }]);
  const large = await server.call("POST", "/api/1/files", multipart(1500));
  expect([large.statusCode, large.json().type]).toEqual([413, "body_too_large"]);
  const elsewhere = await server.call("POST", "/api/1/tiny", multipart(1));
  expect(elsewhere.statusCode).not.toBe(200);
});

test("an unknown address is 404 and a wrong method 405 with the right ones, in the common shape", async () => {
  const nowhere = await server.call("POST", "/api/1/nowhere", {
    body: "{",
    headers: { "content-type": "application/json" },
  });
  expect([nowhere.statusCode, nowhere.json().type]).toEqual([404, "not_found"]);
  const wrong = await server.call("DELETE", "/api/1/echo/bell?times=1");
  expect([wrong.statusCode, wrong.json().type, wrong.headers.allow]).toEqual([405, "method_not_allowed", "POST"]);
  const broken = await server.call("GET", "/api/1/%zz");
  expect([broken.statusCode, broken.json().type]).toEqual([400, "bad_url"]);
  for (const reply of [nowhere, wrong, broken]) expect(reply.json().request_id).toBe(reply.headers["x-request-id"]);
});

test("a sane request id is kept and echoed, any other is replaced", async () => {
  const withId = (id: string) => server.call("GET", "/api/1/whoami", { headers: { "x-request-id": id } });
  const kept = await withId("trace-1.a_B");
  expect([kept.headers["x-request-id"], kept.json().id]).toEqual(["trace-1.a_B", "trace-1.a_B"]);
  for (const bad of ["", "a b", "x".repeat(200), '{"a":1}', "-dash"]) {
    const made = (await withId(bad)).headers["x-request-id"];
    expect(made).toMatch(/^crl_req_/);
  }
});

test("refusals carry their code, hint, detail and Retry-After", async () => {
  const busy = await server.call("GET", "/api/1/fails/busy");
  expect(busy.statusCode).toBe(503);
  expect(busy.headers["retry-after"]).toBe("10");
  expect(busy.json()).toEqual({
    type: "backpressure",
    message: "The queue is full.",
    hint: "Try again later.",
    detail: { length: 100 },
    request_id: busy.headers["x-request-id"],
  });
  const conflict = await server.call("GET", "/api/1/fails/conflict");
  expect([conflict.statusCode, conflict.json().type]).toEqual([409, "already_there"]);
});

test("failures of Redis and SQL are 503 and say when to come back, without naming hosts", async () => {
  const alerts = server.ctx.alerts.recorded.length;
  const seen = async (name: string) => {
    const reply = await server.call("GET", `/api/1/fails/${name}`);
    return [reply.statusCode, reply.json().type, reply.headers["retry-after"]];
  };
  expect(await seen("oom")).toEqual([503, "redis_full", "10"]);
  expect(await seen("redis")).toEqual([503, "redis_unavailable", "5"]);
  expect(await seen("sql")).toEqual([503, "sql_unavailable", "5"]);
  expect(await seen("unknown")).toEqual([503, "outcome_unknown", undefined]);
  expect((await server.call("GET", "/api/1/fails/unknown")).json().message).toMatch(/may have been queued/);
  expect((await server.call("GET", "/api/1/fails/sql")).body).not.toContain("10.1.2.3");
  expect(server.ctx.alerts.recorded.slice(alerts)).toEqual([
    expect.objectContaining({ level: "urgent", identifier: "redis:full" }),
  ]);
});

test("what nobody expected is a 500 that tells nothing, logged and alerted under its request id", async () => {
  for (const name of ["bug", "wrong_type", "answer"]) {
    const reply = await server.call("GET", `/api/1/fails/${name}`, { headers: { "x-request-id": `look-${name}` } });
    expect(reply.statusCode).toBe(500);
    expect(reply.json()).toMatchObject({ type: "internal_error", request_id: `look-${name}` });
    expect(reply.body).not.toMatch(/salary|secret:key|many|stack|hunter2/);
    expect(server.logged()).toContain(`look-${name}`);
    expect(server.ctx.alerts.recorded.at(-1)).toMatchObject({
      level: "error",
      text: expect.stringContaining(`look-${name}`),
    });
  }
  expect(server.logged()).toContain("no such column: salary");
  for (const secret of [SECRET_IN_ERROR, "hunter2"]) {
    expect(server.logged()).not.toContain(secret);
    expect(JSON.stringify(server.ctx.alerts.recorded)).not.toContain(secret);
  }
});

test("every answer has the headers that keep browsers from guessing and framing", async () => {
  const replies = await Promise.all(
    ["/api/1/whoami", "/api/1/nowhere", "/", "/docs/"].map((path) => server.call("GET", path)),
  );
  for (const reply of replies) {
    expect(reply.headers["x-content-type-options"]).toBe("nosniff");
    expect(reply.headers["x-frame-options"]).toBe("DENY");
    expect(reply.headers["referrer-policy"]).toBe("no-referrer");
    expect(reply.headers["content-security-policy"]).toContain("default-src 'none'");
  }
  expect(replies[0]!.headers["cache-control"]).toBe("no-store");
});

test("pages of an allowed origin may call with a token and without cookies; others get no permission", async () => {
  const preflight = (origin: string) =>
    server.call("OPTIONS", "/api/1/echo/bell", {
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" },
    });
  const allowed = await preflight(ORIGIN);
  expect(allowed.statusCode).toBe(204);
  expect(allowed.headers).toMatchObject({
    "access-control-allow-origin": ORIGIN,
    "access-control-allow-headers": expect.stringContaining("authorization"),
    "access-control-allow-methods": expect.stringContaining("PATCH"),
    vary: "Origin",
  });
  const called = await server.call("GET", "/api/1/whoami", { headers: { origin: ORIGIN } });
  expect(called.headers["access-control-allow-origin"]).toBe(ORIGIN);
  expect(called.headers["access-control-expose-headers"]).toContain("x-request-id");
  const refused = await server.call("GET", "/api/1/nowhere", { headers: { origin: ORIGIN } });
  expect(refused.headers["access-control-allow-origin"]).toBe(ORIGIN);
  for (const reply of [
    await preflight("https://evil.example.com"),
    await server.call("GET", "/api/1/whoami", { headers: { origin: "https://evil.example.com" } }),
    await server.call("GET", "/healthz", { headers: { origin: ORIGIN } }),
  ])
    expect(reply.headers).not.toHaveProperty("access-control-allow-origin");
  for (const reply of [allowed, called]) expect(reply.headers).not.toHaveProperty("access-control-allow-credentials");
});

test("a forwarded address counts only when the proxy is trusted", async () => {
  const headers = { "x-forwarded-for": "203.0.113.7" };
  expect((await server.call("GET", "/api/1/whoami", { headers })).json().address).toBe("127.0.0.1");
  const behind = await server.another({ settings: [[httpSettings.trustedProxies, ["10.0.0.0/8"]]] });
  const from = async (remoteAddress: string) =>
    (await behind.inject({ url: "/api/1/whoami", headers, remoteAddress })).json().address;
  expect(await from("10.2.3.4")).toBe("203.0.113.7");
  expect(await from("192.0.2.1")).toBe("192.0.2.1");
});
