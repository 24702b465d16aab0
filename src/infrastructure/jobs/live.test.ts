import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { z } from "zod";
import { eventually } from "../../../test/harness/facts.ts";
import { defineRunner, type ProgressEvent } from "../../jobs/index.ts";
import { newUid } from "../../kernel/ids.ts";
import { LiveGateway } from "../../mechanisms/live-channel/index.ts";
import { type JobServer, openJobServer } from "./jobs.fixture.ts";
import { jobProgress } from "./live.ts";
import { progressToken } from "./progress-access.ts";

const toll = defineRunner({
  name: "runners.test.toll",
  category: 2,
  doc: "Tells of each stroke.",
  kwargs: z.object({}),
  run: async (ctx) => ctx.progress("the first stroke", { type: "bar", at: 1, of: 2 }),
});

type Message =
  | { type: "subscribed"; channel: string; replay: ProgressEvent[] }
  | { type: "event"; channel: string; data: ProgressEvent }
  | { type: "error"; code: string; channel?: string };

let server: JobServer;
let url: string;
let gateway: LiveGateway;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  server = await openJobServer({ runners: [toll] });
  gateway = new LiveGateway(server.ctx, { kinds: [jobProgress(server.ctx)] });
  const app = await server.another({ server: { live: gateway } });
  await app.listen({ host: "127.0.0.1", port: 0 });
  url = `ws://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/1/live`;
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await eventually(() => gateway.open.sockets === 0 && gateway.open.channels === 0, "every socket is gone");
});
afterAll(async () => {
  await gateway.close();
  await server.close();
});

const say = (uid: string, type: ProgressEvent["type"], message = type as string) =>
  server.ctx.jobs.progress.push(uid, { type, message, indicator: null });

/** Events that are too far apart to be taken together. */
async function sayMany(uid: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await say(uid, "progress", `stroke ${n + 1}`);
    await server.ctx.clock.advance(0.25);
  }
}

/** A client that follows a job over a real socket. */
async function watch(uid: string, options: { jwt?: string; since?: number } = {}) {
  const socket = new WebSocket(url);
  sockets.push(socket);
  const messages: Message[] = [];
  socket.on("message", (data) => messages.push(JSON.parse(String(data)) as Message));
  const closed = once(socket, "close").then(([code]) => code as number);
  await once(socket, "open");
  const jwt = options.jwt ?? (await progressToken(server.ctx, uid));
  socket.send(JSON.stringify({ type: "subscribe", channel: `job:${uid}`, jwt, since: options.since }));
  await eventually(() => messages.length > 0, "an answer to the subscription");
  const events = () =>
    messages.flatMap((message) => {
      if (message.type === "subscribed") return message.replay;
      return message.type === "event" ? [message.data] : [];
    });
  return { socket, messages, closed, events, numbers: () => events().map(({ seq }) => seq) };
}

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

test("a subscriber who comes after 20 events gets them in order as a replay, then what follows, each once", async () => {
  const uid = newUid("jp");
  await sayMany(uid, 20);
  const watcher = await watch(uid);
  const [first] = watcher.messages;
  expect(first).toMatchObject({ type: "subscribed", channel: `job:${uid}` });
  expect(watcher.numbers()).toEqual(upTo(20));
  await sayMany(uid, 5);
  await eventually(() => watcher.numbers().length === 25, "five live events");
  expect(watcher.numbers()).toEqual(upTo(25));
  expect(watcher.messages.slice(1)).toHaveLength(5);
  expect(watcher.events().at(-1)).toMatchObject({ type: "progress", message: "stroke 5", indicator: null });
});

test("events that happen while somebody subscribes are neither lost nor told twice", async () => {
  const uid = newUid("jp");
  await say(uid, "queued");
  const watching = Promise.all([watch(uid), watch(uid), watch(uid)]);
  for (let n = 0; n < 45; n++) await say(uid, "spawned", `child ${n}`);
  for (const watcher of await watching) {
    await eventually(() => watcher.numbers().at(-1) === 46, "the last event");
    expect(watcher.numbers()).toEqual(upTo(46));
  }
});

test("of 60 events the last 50 are kept, and since leaves out what the subscriber has", async () => {
  const uid = newUid("jp");
  for (let n = 0; n < 60; n++) await say(uid, "spawned");
  expect((await watch(uid)).numbers()).toEqual(upTo(60, 11));
  expect((await watch(uid, { since: 40 })).numbers()).toEqual(upTo(60, 41));
});

test("after the terminal event the socket is closed with 1000, and who comes late still finds it", async () => {
  const uid = newUid("jp");
  await say(uid, "started");
  const present = await watch(uid);
  await say(uid, "succeeded", "all bells rang");
  expect(await present.closed).toBe(1000);
  expect(present.events().at(-1)).toMatchObject({ seq: 2, type: "succeeded", message: "all bells rang" });
  const late = await watch(uid);
  expect(await late.closed).toBe(1000);
  expect(late.events().map(({ type }) => type)).toEqual(["started", "succeeded"]);
  const token = await progressToken(server.ctx, uid);
  const read = await server.call("GET", `/api/1/jobs/${uid}/progress`, { token });
  expect(read.json()).toMatchObject({ last_seq: 2, done: true });
});

test("a watched job that a worker runs is followed from its queue to its end", async () => {
  const queued = await server.call("POST", "/api/1/admin/jobs", {
    token: server.admin,
    body: { name: toll.name, with_progress: true },
  });
  const { uid, jwt } = queued.json().progress;
  const watcher = await watch(uid, { jwt });
  const worker = server.worker();
  await worker.start();
  try {
    expect(await watcher.closed).toBe(1000);
  } finally {
    await worker.stop();
  }
  expect(watcher.events().map(({ type }) => type)).toEqual(["queued", "started", "progress", "succeeded"]);
  expect(watcher.events()[2]).toMatchObject({ message: "the first stroke", indicator: { type: "bar", at: 1, of: 2 } });
});

test("the token of another job, a foreign token and an expired one open no channel", async () => {
  const uid = newUid("jp");
  await say(uid, "queued");
  const other = await watch(uid, { jwt: await progressToken(server.ctx, newUid("jp")) });
  expect(other.messages).toMatchObject([{ type: "error", code: "progress_token_foreign", channel: `job:${uid}` }]);
  const foreign = await watch(uid, { jwt: server.admin });
  expect(foreign.messages).toMatchObject([{ type: "error", code: "progress_token_invalid" }]);
  const jwt = await progressToken(server.ctx, uid, 5);
  await server.ctx.clock.advance(6);
  const expired = await watch(uid, { jwt });
  expect(expired.messages).toMatchObject([{ type: "error", code: "progress_token_invalid" }]);
  await say(uid, "started");
  const heard = await watch(uid);
  expect(heard.numbers()).toEqual([1, 2]);
  for (const refused of [other, foreign, expired]) expect(refused.events()).toEqual([]);
});

test("a socket whose token runs out while it listens is closed with 4001 and hears no more", async () => {
  const uid = newUid("jp");
  await say(uid, "queued");
  const watcher = await watch(uid, { jwt: await progressToken(server.ctx, uid, 10) });
  await server.ctx.clock.advance(11);
  expect(await watcher.closed).toBe(4001);
  expect(watcher.numbers()).toEqual([1]);
});

test("a chatty job's progress comes five times a second, ends with its last word, and nothing else is dropped", async () => {
  const uid = newUid("jp");
  const watcher = await watch(uid);
  for (let n = 1; n <= 100; n++) {
    await say(uid, "progress", `stroke ${n}`);
    await server.ctx.clock.advance(0.01);
  }
  await server.ctx.clock.advance(1);
  await eventually(() => watcher.events().at(-1)?.message === "stroke 100", "the last word");
  const told = watcher.events();
  expect(told.length).toBeGreaterThanOrEqual(5);
  expect(told.length).toBeLessThanOrEqual(6);
  const strokes = told.map(({ message }) => Number(message.slice("stroke ".length)));
  expect(strokes).toEqual([...strokes].sort((a, b) => a - b));
  for (let n = 1; n <= 40; n++) await say(uid, n % 2 === 0 ? "spawned" : "bounce", `child ${n}`);
  await eventually(() => watcher.events().at(-1)?.message === "child 40", "the last child");
  expect(watcher.events().slice(told.length)).toHaveLength(40);
  expect(watcher.numbers()).toEqual(upTo(told.length + 40));
});
