import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../../../test/harness/facts.ts";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { receivedOf } from "../../kernel/route.ts";

const taken: { readonly body: string; readonly path: string }[] = [];
let fail: (() => Error) | undefined;
const bells = domain({
  name: "bells",
  doc: "of a test",
  routes: [
    route({
      method: "POST",
      path: "/api/1/bells/webhook",
      access: "public",
      summary: "A bell rings",
      consumes: "webhook",
      bodyLimit: 1_000,
      responses: { 200: z.unknown() },
      handle: async (_ctx, request) => {
        const { body, path } = receivedOf(request);
        taken.push({ body: typeof body === "string" ? body : `bytes ${body.toString("latin1")}`, path });
        if (fail) throw fail();
        return { status: body === "too_large" ? 413 : body === "broken" ? 400 : 200 };
      },
    }),
  ],
});

let server: TestServer;
let port: number;
beforeAll(async () => {
  server = await openTestServer({ domains: [bells] });
  await server.app.listen({ host: "127.0.0.1", port: 0 });
  ({ port } = server.app.server.address() as AddressInfo);
});
beforeEach(() => {
  taken.length = 0;
  fail = undefined;
});
afterAll(() => server.close());

const PATH = "/api/1/bells/webhook?x=1";
const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${port}${PATH}`, { method: "POST", body, headers });

test("a webhook gets its bytes and its address as they came, whatever type they claim to have", async () => {
  for (const type of [
    "application/x-www-form-urlencoded",
    "text/plain; charset=UTF-8",
    "application/json",
    "image/bell",
  ]) {
    const answer = await post("{a=1&b", { "content-type": type });
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
    expect(answer.headers.get("x-request-id")).toMatch(/^crl_req_/);
  }
  expect(taken).toEqual(Array.from({ length: 4 }, () => ({ body: "bytes {a=1&b", path: PATH })));
  await post("");
  expect(taken.at(-1)).toEqual({ body: "bytes ", path: PATH });
});

test("a body that announces too many bytes is refused before it is read", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST ${PATH} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\nonly the beginning`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
  expect(taken).toEqual([{ body: "too_large", path: PATH }]);
  socket.destroy();
});

test("a body that grows too long on the way is refused at the limit, and no more of it is read", async () => {
  const socket = connect(port, "127.0.0.1");
  const chunk = `100\r\n${"a".repeat(256)}\r\n`;
  socket.write(`POST ${PATH} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(4)}`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
  expect(taken).toEqual([{ body: "too_large", path: PATH }]);
  socket.destroy();
  expect((await post("a".repeat(1_000))).status).toBe(200);
  expect((await post("a".repeat(1_001))).status).toBe(413);
});

test("a webhook that breaks off is told to the room", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST ${PATH} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf`, () => socket.destroy());
  await eventually(() => taken.length === 1);
  expect(taken).toEqual([{ body: "broken", path: PATH }]);
});

test("when Redis is away the sender is asked to come again, and is told no more", async () => {
  fail = () => kernelErrors.redis_unavailable({ message: "the address of the server" });
  const answer = await post("a");
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await answer.text()).not.toContain("stack");
  fail = () => new Error("a secret");
  const broken = await post("a");
  expect([broken.status, (await broken.text()).includes("secret")]).toEqual([500, false]);
});

test("webhooks that went well are measured and not logged, others are both", async () => {
  const lines = () =>
    server
      .logged()
      .split("\n")
      .filter((line) => line.includes("/bells/webhook")).length;
  const before = lines();
  await post("a");
  const metrics = await server.ctx.metrics.text();
  expect(metrics).toMatch(
    /carillon_http_request_seconds_count\{method="POST",route="\/api\/1\/bells\/webhook",status="200"\}/,
  );
  expect(lines()).toBe(before);
  await post("a".repeat(1_001));
  await eventually(() => lines() === before + 1);
});

test("another method on a webhook's address is refused by name", async () => {
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`);
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
});
