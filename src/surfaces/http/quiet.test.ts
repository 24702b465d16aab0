import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { settings } from "./settings.ts";

const bells = domain({
  name: "bells",
  doc: "of a test",
  routes: [
    route({
      method: "POST",
      path: "/bells/{bell}",
      access: "public",
      summary: "Follow a bell",
      schemas: { params: z.object({ bell: z.string().max(8) }) },
      consumes: "nothing",
      quiet: true,
      async handle(_ctx, { params: { bell }, caller }) {
        if (bell === "broken") throw new Error("a secret of the inside");
        if (bell === "away") throw kernelErrors.redis_unavailable({ retryAfter: 7 });
        return {
          status: 303,
          headers: { location: bell === "garbled" ? "/a\nb" : `/${bell}/${caller.role}`, "cache-control": "no-store" },
          body: "",
        };
      },
    }),
    route({
      method: "POST",
      path: "/api/1/bells",
      access: "public",
      summary: "Ring a bell",
      schemas: { body: z.strictObject({ bell: z.string() }) },
      responses: { 200: z.object({ rang: z.string() }) },
      quiet: true,
      handle: async (_ctx, { body }) => ({
        status: 200,
        headers: { "cache-control": "private" },
        body: { rang: `${body.bell} ü` },
      }),
    }),
  ],
});

let server: TestServer;
let port: number;
beforeAll(async () => {
  server = await openTestServer({
    domains: [bells],
    settings: [[settings.allowedOrigins, ["https://app.example.com"]]],
  });
  await server.app.listen({ host: "127.0.0.1", port: 0 });
  ({ port } = server.app.server.address() as AddressInfo);
});
afterAll(() => server.close());

const post = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", redirect: "manual", ...init });

test("a quiet route answers with the headers of every answer, each once, its own before them", async () => {
  const followed = await post("/bells/great");
  expect([followed.status, followed.headers.get("location"), await followed.text()]).toEqual([
    303,
    "/great/anonymous",
    "",
  ]);
  const headers = { "content-type": "application/json", origin: "https://app.example.com", "x-request-id": "bell-1" };
  const rung = await post("/api/1/bells", { headers, body: '{"bell":"great"}' });
  expect([rung.status, await rung.json()]).toEqual([200, { rang: "great ü" }]);
  for (const { headers: sent } of [followed, rung]) {
    expect(sent.get("x-content-type-options")).toBe("nosniff");
    expect(sent.get("referrer-policy")).toBe("no-referrer");
    expect(sent.get("content-security-policy")).toContain("default-src 'none'");
  }
  expect(followed.headers.get("cache-control")).toBe("no-store");
  expect(rung.headers.get("cache-control")).toBe("private");
  expect(rung.headers.get("x-request-id")).toBe("bell-1");
  expect(rung.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
  expect(
    (await post("/api/1/bells", { headers: { ...headers, origin: "https://other.example" } })).headers.get(
      "access-control-allow-origin",
    ),
  ).toBeNull();
});

test("a quiet route refuses in the shape of every refusal, and tells nothing of the inside", async () => {
  const json = { "content-type": "application/json" };
  const answers = await Promise.all([
    post("/bells/much-too-long"),
    post("/bells/broken"),
    post("/bells/garbled"),
    post("/bells/away"),
    post("/api/1/bells", { headers: json, body: '{"bell":1}' }),
    post("/api/1/bells", { headers: json, body: "{" }),
    post("/api/1/bells", { headers: { "content-type": "text/plain" }, body: "x" }),
  ]);
  const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { type: string; request_id: string }[];
  expect(answers.map(({ status }, at) => [status, bodies[at]!.type])).toEqual([
    [422, "invalid_request"],
    [500, "internal_error"],
    [500, "internal_error"],
    [503, "redis_unavailable"],
    [422, "invalid_request"],
    [400, "malformed_json"],
    [415, "unsupported_media_type"],
  ]);
  expect(answers[3]!.headers.get("retry-after")).toBe("7");
  expect(JSON.stringify(bodies)).not.toContain("secret of the inside");
  for (const [at, answer] of answers.entries()) {
    expect(answer.headers.get("x-request-id")).toBe(bodies[at]!.request_id);
    expect(answer.headers.get("x-frame-options")).toBe("DENY");
  }
});

test("a quiet route that takes nothing leaves the body alone, and the connection goes on after it", async () => {
  const socket = connect({ host: "127.0.0.1", port });
  await once(socket, "connect");
  const ask = (bell: string, body: string) =>
    `POST /bells/${bell} HTTP/1.1\r\nhost: x\r\ncontent-type: image/bell\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk.toString("latin1");
  });
  socket.write(ask("one", "x".repeat(100_000)) + ask("two", ""));
  while (!got.includes("/two/anonymous")) await once(socket, "data");
  expect(got.match(/HTTP\/1\.1 303/g)).toHaveLength(2);
  socket.write("POST /bells/three HTTP/1.1\r\nhost: x y\r\ncontent-length: 0\r\n\r\n");
  while (!got.includes("bad_request")) await once(socket, "data");
  socket.destroy();
});

test("quiet requests are measured under their pattern", async () => {
  await post("/bells/great");
  const text = await server.ctx.metrics.text();
  expect(text).toContain('carillon_http_request_seconds_count{method="POST",route="/bells/:bell",status="303"}');
});
