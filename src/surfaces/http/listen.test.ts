import { once } from "node:events";
import { request } from "node:http";
import { connect, createServer, type Server } from "node:net";
import type { FastifyInstance } from "fastify";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../test/harness/facts.ts";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { systemClock } from "../../kernel/clock.ts";
import { checkReadiness, closeServer, type LiveGateway, listen } from "./index.ts";

/** A route that answers only when the test says so. */
class Gate {
  waiting = 0;
  #open: (() => void)[] = [];

  pass(): Promise<void> {
    this.waiting += 1;
    return new Promise((resolve) => this.#open.push(resolve));
  }

  open(): void {
    for (const resolve of this.#open.splice(0)) resolve();
    this.waiting = 0;
  }
}

const gate = new Gate();
const slow = domain({
  name: "slow",
  routes: [
    route({
      method: "GET",
      path: "/api/1/slow",
      access: "public",
      summary: "Takes its time",
      handle: async () => {
        await gate.pass();
        return { status: 200, body: { done: true } };
      },
    }),
    route({
      method: "POST",
      path: "/api/1/slow_webhook",
      access: "public",
      summary: "Takes its time over news",
      consumes: "webhook",
      handle: async () => {
        await gate.pass();
        return { status: 200, body: { done: true } };
      },
    }),
    route({
      method: "POST",
      path: "/api/1/upload",
      access: "public",
      summary: "Takes a file",
      consumes: "multipart",
      handle: () => ({ status: 202 }),
    }),
  ],
});

const sockets: unknown[] = [];
const live: LiveGateway = {
  accept: (socket) => {
    sockets.push(socket);
    socket.on("message", (message) => socket.send(`heard ${message}`));
  },
};

let server: TestServer;
const open: FastifyInstance[] = [];
const taken: Server[] = [];
beforeAll(async () => {
  server = await openTestServer({ domains: [slow] });
});
afterEach(async () => {
  gate.open();
  for (const app of open.splice(0)) await app.close();
  for (const other of taken.splice(0)) other.close();
});
afterAll(() => server.close());

async function start(): Promise<{ app: FastifyInstance; url: string; port: number }> {
  const app = await server.another({ server: { live } });
  open.push(app);
  return { app, ...(await listen(app, { host: "127.0.0.1", port: 0 })) };
}

test("a listening server answers requests and refuses strangers", async () => {
  const { url } = await start();
  const reply = await fetch(`${url}/healthz`);
  expect([reply.status, await reply.json()]).toEqual([200, { status: "ok" }]);
  expect(reply.headers.get("x-request-id")).toMatch(/^crl_req_/);
  const refused = await fetch(`${url}/api/1/users/me`);
  expect(refused.status).toBe(401);
});

test("sockets of the live address are handed to the gateway, and other requests there are told to upgrade", async () => {
  const { url } = await start();
  const socket = new WebSocket(`${url.replace("http", "ws")}/api/1/live`);
  await once(socket, "open");
  socket.send("hello");
  const [message] = await once(socket, "message");
  expect(String(message)).toBe("heard hello");
  expect(sockets.length).toBe(1);
  socket.close();
  await once(socket, "close");
  const plain = await fetch(`${url}/api/1/live`);
  const told = (await plain.json()) as { type: string };
  expect([plain.status, told.type]).toEqual([426, "upgrade_required"]);
});

test("a message too long for the live address ends its socket", async () => {
  const { url } = await start();
  const socket = new WebSocket(`${url.replace("http", "ws")}/api/1/live`);
  await once(socket, "open");
  socket.send("x".repeat(70_000));
  const [code] = await once(socket, "close");
  expect(code).toBe(1009);
});

test("what is no HTTP is answered in the common shape and cut off", async () => {
  const { port } = await start();
  const socket = connect(port, "127.0.0.1");
  socket.write("HELLO\r\n\r\n");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  await once(socket, "close");
  const [head, body] = Buffer.concat(chunks).toString().split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 400 /);
  expect(JSON.parse(body!)).toMatchObject({ type: "bad_request", request_id: expect.stringMatching(/^crl_req_/) });
});

test("an upload of unannounced length is refused", async () => {
  const { port } = await start();
  const upload = request({
    port,
    method: "POST",
    path: "/api/1/upload",
    headers: { "content-type": "multipart/form-data; boundary=edge", "transfer-encoding": "chunked" },
  });
  upload.end("--edge--\r\n");
  const [reply] = await once(upload, "response");
  reply.resume();
  expect(reply.statusCode).toBe(411);
});

test("closing waits for requests on the way, and takes no new connection meanwhile", async () => {
  const { app, url } = await start();
  const onTheWay = fetch(`${url}/api/1/slow`);
  await eventually(() => gate.waiting === 1);
  const closing = closeServer(app, server.ctx.clock);
  await eventually(() => !app.server.listening);
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  gate.open();
  expect(await (await onTheWay).json()).toEqual({ done: true });
  expect(await closing).toBe(true);
});

test.each([
  "GET /api/1/slow HTTP/1.1\r\nhost: here\r\n\r\n",
  "POST /api/1/slow_webhook HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n{}",
])(
  "an answer given while the server closes ends its connection, so that closing is not kept waiting: %j",
  async (asked) => {
    const { app, port } = await start();
    const socket = connect(port, "127.0.0.1");
    socket.write(asked);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    await eventually(() => gate.waiting === 1);
    const closing = closeServer(app, server.ctx.clock);
    await eventually(() => !app.server.listening);
    gate.open();
    await once(socket, "close");
    expect(await closing).toBe(true);
    expect(Buffer.concat(chunks).toString()).toMatch(/connection: close[\s\S]*\{"done":true\}/i);
  },
);

test("requests that outlast the grace of closing are cut off", async () => {
  const { app, url } = await start();
  const stuck = fetch(`${url}/api/1/slow`).then(
    () => "answered",
    () => "cut off",
  );
  await eventually(() => gate.waiting === 1);
  const asleep = server.ctx.clock.sleeping;
  const closing = closeServer(app, server.ctx.clock, 25);
  await eventually(() => server.ctx.clock.sleeping > asleep);
  await server.ctx.clock.advance(26);
  expect(await stuck).toBe("cut off");
  gate.open();
  expect(await closing).toBe(false);
});

test("a busy port is an error, unless the caller allows others", async () => {
  const blocker = createServer().listen(0, "127.0.0.1");
  taken.push(blocker);
  await once(blocker, "listening");
  const { port } = blocker.address() as { port: number };
  const strict = await server.another({});
  open.push(strict);
  await expect(listen(strict, { host: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  const lenient = await server.another({});
  open.push(lenient);
  const found = await listen(lenient, { host: "127.0.0.1", port, alternatives: 20 });
  expect(found.port).toBeGreaterThan(port);
  expect((await fetch(`${found.url}/healthz`)).status).toBe(200);
});

test("readiness asks the real parts, and a Redis that is gone makes the server unready in good time", async () => {
  await server.ctx.redis.ready();
  await eventually(async () => Object.values(await checkReadiness(server.ctx)).every(Boolean), "everything works");
  await server.ctx.redis.commands.script("FLUSH");
  expect(await checkReadiness(server.ctx)).toMatchObject({ redis: true, sql: true, scripts: false });
  await server.ctx.server.server.kill();
  const real = Object.create(server.ctx, { clock: { value: systemClock } }) as typeof server.ctx;
  expect(await checkReadiness(real)).toMatchObject({ redis: false, sql: true, scripts: false });
});
