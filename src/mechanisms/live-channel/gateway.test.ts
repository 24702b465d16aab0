import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { channel, family, json } from "../../kernel/keyspace/index.ts";
import { type LiveChannelKind, LiveGateway, type LiveLimits } from "./index.ts";

const keys = family("progress", {
  events: channel("ps:progress:{uid}", json(z.object({ seq: z.number() })), { doc: "what happens to a job" }),
});

interface Event {
  readonly seq: number;
  readonly text: string;
}

let context: TestContext;
let server: WebSocketServer;
let ctx: KernelContext & { readonly alerts: AlertRecorder };
let gateway: LiveGateway;
let kept: Event[];
let replayGate: Promise<void> | undefined;
let clients: Client[] = [];

/** The jwt of these tests says when it ends; any other text is refused. */
const kind: LiveChannelKind = {
  prefix: "job:",
  authorize: (jwt) =>
    jwt.startsWith("until ")
      ? { ok: true, expiresAt: Number(jwt.slice(6)) }
      : { ok: false, code: "forbidden", message: "not your job" },
  channelKey: (uid) => keys.events({ uid }),
  replay: async (_uid, since) => {
    const events = kept.filter(({ seq }) => seq > (since ?? 0));
    await replayGate;
    return { events, ended: events.some(({ text }) => text === "last") };
  },
  endsWith: (message) => message === "done",
};

class Client {
  readonly socket: WebSocket;
  readonly received: { type: string; [field: string]: unknown }[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(options: { autoPong?: boolean } = {}) {
    this.socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, options);
    this.socket.on("message", (data) => this.received.push(JSON.parse(String(data))));
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      this.socket.on("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
    clients.push(this);
  }

  async say(message: unknown): Promise<void> {
    if (this.socket.readyState === WebSocket.CONNECTING) await once(this.socket, "open");
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  async subscribe(name: string, more: { jwt?: string; since?: number } = {}): Promise<void> {
    await this.say({ type: "subscribe", channel: `job:${name}`, jwt: `until ${context.clock.now() + 600}`, ...more });
  }

  ofType(type: string) {
    return this.received.filter((message) => message.type === type);
  }

  /** The sequence numbers that it has seen, replayed and live, in the order they came. */
  get sequence(): number[] {
    return this.received.flatMap((message) =>
      message.type === "subscribed"
        ? (message.replay as Event[]).map(({ seq }) => seq)
        : message.type === "event"
          ? [(message.data as Event).seq]
          : [],
    );
  }
}

async function publish(name: string, message: Event | string): Promise<void> {
  if (typeof message !== "string") kept.push(message);
  const raw = typeof message === "string" ? message : JSON.stringify(message);
  await context.redis.commands.publish(keys.events({ uid: name }), raw);
}

const subscribedChannels = async () =>
  ((await context.redis.commands.pubsub("CHANNELS", "ps:progress:*")) as string[]).sort();

function open(limits: Partial<LiveLimits> = {}): void {
  gateway = new LiveGateway(ctx, { kinds: [kind], limits });
}

beforeAll(async () => {
  context = await openTestContext();
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (socket) => gateway.accept(socket));
});
afterAll(async () => {
  server.close();
  await context.close();
});
beforeEach(() => {
  kept = [];
  replayGate = undefined;
  ctx = context.process();
  open();
});
afterEach(async () => {
  for (const client of clients) client.socket.terminate();
  clients = [];
  await gateway.close();
});

describe("following a channel", () => {
  it("gives the replay first, then events as they are published, in order and without repeats", async () => {
    kept = [1, 2, 3].map((seq) => ({ seq, text: "early" }));
    const client = new Client();
    await client.subscribe("j");
    await eventually(() => client.ofType("subscribed").length === 1);
    for (const seq of [4, 5]) await publish("j", { seq, text: "live" });
    await eventually(() => client.received.length === 3);
    expect(client.received[0]).toEqual({ type: "subscribed", channel: "job:j", replay: kept.slice(0, 3) });
    expect(client.received[1]).toEqual({ type: "event", channel: "job:j", data: { seq: 4, text: "live" } });
    expect(client.sequence).toEqual([1, 2, 3, 4, 5]);
  });

  it("loses nothing and repeats nothing that happens while the replay is being read", async () => {
    kept = [{ seq: 1, text: "early" }];
    let release = () => {};
    replayGate = new Promise((resolve) => {
      release = resolve;
    });
    const client = new Client();
    await client.subscribe("j");
    await eventually(async () => (await subscribedChannels()).length === 1);
    // Published after the subscription; the replay that was already read does not have 2, and has 1.
    await publish("j", JSON.stringify({ seq: 1, text: "early" }));
    await publish("j", { seq: 2, text: "meanwhile" });
    await eventually(() => gateway.open.channels === 1);
    release();
    await eventually(() => client.sequence.length === 2);
    await publish("j", { seq: 3, text: "after" });
    await eventually(() => client.sequence.length === 3);
    expect(client.sequence).toEqual([1, 2, 3]);
  });

  it("starts after the number that the client already has", async () => {
    kept = Array.from({ length: 20 }, (_, index) => ({ seq: index + 1, text: "early" }));
    const client = new Client();
    await client.subscribe("j", { since: 15 });
    await eventually(() => client.sequence.length === 5);
    await publish("j", JSON.stringify({ seq: 12, text: "late twin" }));
    await publish("j", { seq: 21, text: "live" });
    await eventually(() => client.sequence.includes(21));
    expect(client.sequence).toEqual([16, 17, 18, 19, 20, 21]);
  });

  it("subscribes the Redis channel with the first socket and unsubscribes with the last", async () => {
    const [one, two, other] = [new Client(), new Client(), new Client()];
    await one.subscribe("j");
    await two.subscribe("j");
    await other.subscribe("k");
    await eventually(() => clients.every((client) => client.ofType("subscribed").length === 1));
    expect(await subscribedChannels()).toEqual(["ps:progress:j", "ps:progress:k"]);
    expect(gateway.open).toEqual({ sockets: 3, channels: 2 });
    one.socket.close();
    await eventually(() => gateway.open.sockets === 2);
    await publish("j", { seq: 1, text: "still here" });
    await eventually(() => two.sequence.length === 1);
    two.socket.close();
    await eventually(async () => (await subscribedChannels()).join() === "ps:progress:k");
    expect(gateway.open).toEqual({ sockets: 1, channels: 1 });
    const again = new Client();
    await again.subscribe("j");
    await eventually(() => again.ofType("subscribed").length === 1);
    await publish("j", { seq: 2, text: "again" });
    await eventually(() => again.sequence.at(-1) === 2);
  });

  it("ends with 1000 when nothing more will come, told live or found in the replay", async () => {
    const early = new Client();
    await early.subscribe("j");
    await eventually(() => early.ofType("subscribed").length === 1);
    await publish("j", { seq: 1, text: "last" });
    await publish("j", "done");
    expect(await early.closed).toMatchObject({ code: 1000 });
    expect(early.sequence).toEqual([1]);
    const late = new Client();
    await late.subscribe("j");
    expect(await late.closed).toMatchObject({ code: 1000 });
    expect(late.sequence).toEqual([1]);
  });

  it("keeps a socket that still follows another channel when one has ended", async () => {
    const client = new Client();
    await client.subscribe("j");
    await client.subscribe("k");
    await eventually(() => client.ofType("subscribed").length === 2);
    await publish("j", "done");
    await eventually(() => gateway.open.channels === 1);
    await publish("k", { seq: 1, text: "goes on" });
    await eventually(() => client.sequence.length === 1);
  });

  it("sends what was missed while the subscriber was away", async () => {
    const client = new Client();
    await client.subscribe("j");
    await eventually(() => client.ofType("subscribed").length === 1);
    await publish("j", { seq: 1, text: "live" });
    await eventually(() => client.sequence.length === 1);
    await context.redis.commands.call("CLIENT", "KILL", "TYPE", "pubsub");
    await publish("j", { seq: 2, text: "missed" });
    await eventually(() => client.sequence.length === 2);
    await eventually(async () => (await subscribedChannels()).length === 1);
    await publish("j", { seq: 3, text: "live again" });
    await eventually(() => client.sequence.length === 3);
    expect(client.sequence).toEqual([1, 2, 3]);
  });
});

describe("refusing", () => {
  it("answers bad messages, unknown channels and bad credentials with an error and stays open", async () => {
    const client = new Client();
    for (const bad of ["not json", "[]", { type: "shout" }, { type: "subscribe", channel: "job:j" }])
      await client.say(bad);
    await client.say({ type: "subscribe", channel: "room:j", jwt: "until 1" });
    await client.subscribe("j", { jwt: "forged" });
    await client.subscribe("j", { jwt: `until ${context.clock.now()}` });
    client.socket.send(Buffer.from([1, 2]), { binary: true });
    await eventually(() => client.received.length === 8);
    const codes = client.ofType("error").map(({ code }) => code);
    expect(codes.sort()).toEqual([...Array(5).fill("bad_message"), "expired", "forbidden", "unknown_channel"].sort());
    expect(client.ofType("error").every(({ message }) => typeof message === "string")).toBe(true);
    expect(await subscribedChannels()).toEqual([]);
    await client.subscribe("j");
    await eventually(() => client.ofType("subscribed").length === 1);
  });

  it("closes with 4008 at the 51st channel, but not for asking twice for one", async () => {
    const client = new Client();
    for (let index = 0; index < 50; index++) await client.subscribe(`j${index}`);
    await eventually(() => client.ofType("subscribed").length === 50);
    await client.subscribe("j7");
    await eventually(() => client.ofType("subscribed").length === 51);
    await client.subscribe("one-too-many");
    expect(await client.closed).toMatchObject({ code: 4008 });
    await eventually(async () => (await subscribedChannels()).length === 0);
  });

  it("closes with 4001 when a credential ends, unless it was renewed by asking again", async () => {
    const [expiring, renewed] = [new Client(), new Client()];
    const jwt = `until ${context.clock.now() + 10}`;
    await expiring.subscribe("j", { jwt });
    await renewed.subscribe("j", { jwt });
    await eventually(() => clients.every((client) => client.ofType("subscribed").length === 1));
    await renewed.subscribe("j");
    await eventually(() => renewed.ofType("subscribed").length === 2);
    await context.clock.advance(11);
    expect(await expiring.closed).toMatchObject({ code: 4001 });
    await publish("j", { seq: 1, text: "after" });
    await eventually(() => renewed.sequence.includes(1));
    expect(expiring.sequence).toEqual([]);
  });

  it("closes with 4000 a socket that gave no sign of life for 60 s, and pings the others every 30 s", async () => {
    const [silent, alive] = [new Client({ autoPong: false }), new Client()];
    await silent.subscribe("j");
    await alive.subscribe("j");
    await eventually(() => clients.every((client) => client.ofType("subscribed").length === 1));
    let [pings, pongs] = [0, 0];
    alive.socket.on("ping", () => pings++);
    for (const socket of server.clients) socket.on("pong", () => pongs++);
    await context.clock.advance(30);
    await eventually(() => pings === 1 && pongs === 1);
    expect(silent.socket.readyState).toBe(WebSocket.OPEN);
    await context.clock.advance(31);
    expect(await silent.closed).toMatchObject({ code: 4000 });
    await eventually(() => pings === 2);
    expect(alive.socket.readyState).toBe(WebSocket.OPEN);
  });

  it("closes with 1013 a socket that does not take what is sent to it, and no other", async () => {
    const [slow, quick] = [new Client(), new Client()];
    await slow.subscribe("j");
    await quick.subscribe("j");
    await eventually(() => clients.every((client) => client.ofType("subscribed").length === 1));
    slow.socket.pause();
    const text = "x".repeat(256 * 1024);
    for (let seq = 1; gateway.open.sockets === 2 && seq < 200; seq++) await publish("j", { seq, text });
    expect(gateway.open.sockets).toBe(1);
    slow.socket.resume();
    expect(await slow.closed).toMatchObject({ code: 1013 });
    await eventually(() => quick.sequence.at(-1) === kept.at(-1)!.seq);
  });

  it("closes with 1009 a message longer than any honest one", async () => {
    const client = new Client();
    await client.say("x".repeat(65 * 1024));
    expect(await client.closed).toMatchObject({ code: 1009 });
  });

  it("drops messages that are not JSON with one warning an hour", async () => {
    const client = new Client();
    await client.subscribe("j");
    await eventually(() => client.ofType("subscribed").length === 1);
    for (const bad of ["{", "nonsense"]) await publish("j", bad);
    await publish("j", { seq: 1, text: "good" });
    await eventually(() => client.sequence.length === 1);
    expect(ctx.alerts.identifiers()).toEqual(["live:malformed:job:"]);
  });

  it("says that a channel is unavailable when its replay cannot be read, and forgets it", async () => {
    replayGate = Promise.reject(new Error("Redis is away"));
    replayGate.catch(() => {});
    const client = new Client();
    await client.subscribe("j");
    await eventually(() => client.ofType("error").length === 1);
    expect(client.ofType("error")[0]).toMatchObject({ code: "unavailable", channel: "job:j" });
    await eventually(async () => (await subscribedChannels()).length === 0);
  });

  it("does not register two kinds of channels that could claim one name", () => {
    expect(() => gateway.register({ ...kind, prefix: "job:special:" })).toThrow(/start with/);
  });
});

describe("shutting down", () => {
  it("closes all with 1012 and takes nobody in after that", async () => {
    const client = new Client();
    await client.subscribe("j");
    await eventually(() => client.ofType("subscribed").length === 1);
    await gateway.close();
    expect(await client.closed).toMatchObject({ code: 1012 });
    expect(await new Client().closed).toMatchObject({ code: 1012 });
    expect(gateway.open).toEqual({ sockets: 0, channels: 0 });
  });

  it("waits at most 5 s for sockets that do not answer", async () => {
    const deaf = new Client();
    await deaf.subscribe("j");
    await eventually(() => deaf.ofType("subscribed").length === 1);
    deaf.socket.pause();
    const before = context.clock.sleeping;
    const closed = gateway.close();
    await eventually(() => context.clock.sleeping >= before);
    const started = context.clock.monotonic();
    await context.clock.advance(5);
    await closed;
    expect(context.clock.monotonic() - started).toBeLessThanOrEqual(5);
    await eventually(() => [...server.clients].every((socket) => socket.readyState === WebSocket.CLOSED));
  });
});
