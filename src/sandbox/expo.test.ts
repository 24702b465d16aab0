import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { openStage, type Stage } from "./stage.fixture.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage();
});
afterEach(() => stage.close());

const token = (name: string) => `ExponentPushToken[${name}]`;
const push = (name: string) => ({
  to: token(name),
  title: "Time to breathe",
  body: "Three minutes",
  channelId: "daily",
});

const post = (path: string, body: unknown, headers: Record<string, string> = {}, on = stage) =>
  fetch(`${on.sandbox.url}/--/api/v2/push/${path}`, {
    method: "POST",
    body: gzipSync(JSON.stringify(body)),
    headers: { "content-type": "application/json", "content-encoding": "gzip", ...headers },
  });
const send = async (...names: string[]) => {
  const response = await post("send", names.map(push));
  return (await response.json()) as { data: { status: string; id: string; details?: { error: string } }[] };
};
const receipts = async (...ids: string[]) =>
  ((await (await post("getReceipts", { ids })).json()) as { data: Record<string, unknown> }).data;

describe("Expo's tickets", () => {
  it("come in the order of the messages, which stand in the inbox", async () => {
    const { data } = await send("a", "b");
    expect(data).toEqual([
      { status: "ok", id: expect.any(String) },
      { status: "ok", id: expect.any(String) },
    ]);
    expect(stage.sandbox.inbox.all()).toMatchObject([
      {
        channel: "push",
        provider_id: data[0]!.id,
        to: token("a"),
        subject: "Time to breathe",
        text: "Three minutes",
        fields: { channelId: "daily" },
      },
      { to: token("b") },
    ]);
  });

  it("are packed when the caller can unpack them, and not otherwise", async () => {
    const { request } = await import("node:http");
    const answer = (encoding: string) =>
      new Promise<{ encoding: string | undefined; bytes: Buffer }>((resolve) => {
        const asking = request(`${stage.sandbox.url}/--/api/v2/push/send`, {
          method: "POST",
          headers: { "accept-encoding": encoding, "content-type": "application/json" },
        });
        asking.on("response", async (response) => {
          const chunks: Buffer[] = [];
          for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
          resolve({ encoding: response.headers["content-encoding"], bytes: Buffer.concat(chunks) });
        });
        asking.end(JSON.stringify([push("a")]));
      });
    const packed = await answer("gzip, deflate");
    expect(packed.encoding).toBe("gzip");
    expect(JSON.parse(gunzipSync(packed.bytes).toString())).toMatchObject({ data: [{ status: "ok" }] });
    const plain = await answer("identity");
    expect(plain.encoding).toBeUndefined();
    expect(JSON.parse(plain.bytes.toString())).toMatchObject({ data: [{ status: "ok" }] });
  });

  it("are refused for unregistered devices, by magic token, by knob, and for what is no token", async () => {
    stage.sandbox.knobs.patch({ expo: { ticketErrors: { [token("odd")]: "MessageRateExceeded" } } });
    const { data } = await send("sandbox-unregistered-1", "odd", "fine");
    expect(data.map(({ status, details }) => details?.error ?? status)).toEqual([
      "DeviceNotRegistered",
      "MessageRateExceeded",
      "ok",
    ]);
    const foreign = await post("send", [{ to: "fcm:abc" }]);
    expect(await foreign.json()).toMatchObject({ data: [{ details: { error: "DeviceNotRegistered" } }] });
    expect(stage.sandbox.inbox.size).toBe(1);
  });

  it("are not given to more than a hundred messages, nor receipts to more than a thousand ids", async () => {
    const many = await post(
      "send",
      Array.from({ length: 101 }, (_, index) => push(`t${index}`)),
    );
    expect([many.status, await many.json()]).toMatchObject([
      400,
      { errors: [{ code: "PUSH_TOO_MANY_NOTIFICATIONS" }] },
    ]);
    expect((await post("getReceipts", { ids: Array.from({ length: 1001 }, String) })).status).toBe(400);
    expect((await post("getReceipts", { ids: Array.from({ length: 1000 }, String) })).status).toBe(200);
    expect((await post("send", [{ title: "to nobody" }])).status).toBe(400);
    expect(stage.sandbox.inbox.size).toBe(0);
  });

  it("need the bearer token when one is set", async () => {
    const guarded = await openStage({ secrets: { expoAccessToken: "s3cret" } });
    expect((await post("send", [push("a")], {}, guarded)).status).toBe(401);
    expect((await post("send", [push("a")], { authorization: "Bearer s3cret" }, guarded)).status).toBe(200);
    await guarded.close();
  });
});

describe("Expo's receipts", () => {
  it("appear when the delay has passed on the clock, and are kept for a day", async () => {
    const { data } = await send("a");
    const id = data[0]!.id;
    await stage.clock.advance(4.9);
    expect(await receipts(id)).toEqual({});
    await stage.clock.advance(0.1);
    expect(await receipts(id, "unknown")).toEqual({ [id]: { status: "ok" } });
    await stage.clock.advance(86_400);
    expect(await receipts(id)).toEqual({});
  });

  it("tell of errors by magic token, by knob and for messages that are too big; some never come", async () => {
    stage.sandbox.knobs.patch({
      expo: {
        receiptErrors: { [token("bad")]: "InvalidCredentials" },
        receiptNever: [token("never")],
        receiptDelaySeconds: 1,
      },
    });
    const { data } = await send("sandbox-receipt-MismatchSenderId-1", "bad", "never", "sandbox-slow-1", "fine");
    const big = await post("send", [{ ...push("big"), body: "x".repeat(4096) }]);
    const bigTicket = ((await big.json()) as { data: { id: string }[] }).data[0]!;
    await stage.clock.advance(3600);
    const ids = [...data.map(({ id }) => id), bigTicket.id];
    const found = (await receipts(...ids)) as Record<string, { status: string; details?: { error: string } }>;
    expect(ids.map((id) => found[id] && (found[id].details?.error ?? found[id].status))).toEqual([
      "MismatchSenderId",
      "InvalidCredentials",
      undefined,
      undefined,
      "ok",
      "MessageTooBig",
    ]);
  });

  it("come late or fail when an action says so", async () => {
    const { data } = await send("sandbox-slow-late", "sandbox-slow-lost");
    const [late, lost] = stage.sandbox.inbox.all();
    await stage.sandbox.act(late!, { action: "deliver", after_seconds: 60 });
    await stage.sandbox.act(lost!, { action: "fail" });
    expect(await receipts(data[0]!.id, data[1]!.id)).toMatchObject({
      [data[1]!.id]: { status: "error", details: { error: "DeviceNotRegistered" } },
    });
    await stage.clock.advance(60);
    expect(await receipts(data[0]!.id)).toEqual({ [data[0]!.id]: { status: "ok" } });
    expect(stage.sandbox.inbox.historyOf(late!).map(({ status }) => status)).toEqual(["accepted", "delivered"]);
  });
});

describe("Expo's faults", () => {
  const statuses = async (count: number, on = stage) => {
    const seen: number[] = [];
    for (let index = 0; index < count; index++) seen.push((await post("send", [push("a")], {}, on)).status);
    return seen;
  };

  it("strike the next requests, and then no more", async () => {
    stage.sandbox.knobs.patch({ expo: { failNext: { status: 429, count: 2 } } });
    expect(await statuses(3)).toEqual([429, 429, 200]);
    expect(stage.sandbox.knobs.get().expo.failNext).toEqual({ status: 429, count: 0 });
    expect(stage.sandbox.inbox.size).toBe(1);
  });

  it("follow from the seed", async () => {
    const run = async (seed: number) => {
      const other = await openStage({ seed });
      other.sandbox.knobs.patch({ expo: { errorRate: 0.5 } });
      const seen = await statuses(30, other);
      await other.close();
      return seen.join(" ");
    };
    const first = await run(7);
    expect(first).toContain("500");
    expect(first).toContain("200");
    expect(await run(7)).toBe(first);
    expect(await run(8)).not.toBe(first);
  });

  it("take time on the clock", async () => {
    stage.sandbox.knobs.patch({ expo: { latencyMs: 2000 } });
    let status = 0;
    const asking = post("send", [push("a")]).then((response) => {
      status = response.status;
    });
    await eventually(() => stage.clock.sleeping === 1);
    await stage.clock.advance(1.9);
    expect(status).toBe(0);
    await stage.clock.advance(0.1);
    await asking;
    expect(status).toBe(200);
  });

  it("cut the answer of what was accepted", async () => {
    stage.sandbox.knobs.patch({ expo: { dropConnectionAfterAccept: 1 } });
    await expect(post("send", [push("a")])).rejects.toThrow();
    expect(stage.sandbox.inbox.size).toBe(1);
    expect((await post("send", [push("a")])).status).toBe(200);
  });

  it("answer what is no JSON, what has another structure, and one ticket too few", async () => {
    const answer = async (malformed: "json" | "structure" | "count", path = "send", body: unknown = [push("a")]) => {
      stage.sandbox.knobs.patch({ expo: { malformed } });
      return (await post(path, body)).text();
    };
    const broken = await answer("json");
    expect(() => JSON.parse(broken)).toThrow();
    expect(JSON.parse(await answer("structure"))).toMatchObject({ data: { tickets: [{}] } });
    expect(JSON.parse(await answer("count"))).toEqual({ data: [] });
    expect(JSON.parse(await answer("structure", "getReceipts", { ids: [] }))).toEqual({ data: [] });
  });

  it("limit the notifications of a second", async () => {
    stage.sandbox.knobs.patch({ expo: { ratePerSecond: 2 } });
    expect(await statuses(3)).toEqual([200, 200, 429]);
    await stage.clock.advance(1);
    expect(await statuses(1)).toEqual([200]);
  });

  it("last as long as an outage", async () => {
    const from = stage.clock.now() + 10;
    stage.sandbox.knobs.patch({ expo: { outage: { from, until: from + 60 } } });
    expect(await statuses(1)).toEqual([200]);
    await stage.clock.advance(10);
    expect(await statuses(2)).toEqual([503, 503]);
    await stage.clock.advance(60);
    expect(await statuses(1)).toEqual([200]);
  });
});
