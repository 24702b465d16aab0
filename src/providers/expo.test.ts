import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { VirtualClock } from "../kernel/clock.ts";
import { silentLog } from "../kernel/log.ts";
import { ExpoPush } from "./expo.ts";
import {
  type Answering,
  answersJson,
  answersText,
  breaksOff,
  type FixtureServer,
  hangsUp,
  isSilent,
  startServer,
} from "./http-server.fixture.ts";
import { pushConformance } from "./push.conformance.ts";

type Item = { readonly to: string };

function expoAt(url: string, more: Partial<ConstructorParameters<typeof ExpoPush>[0]> = {}) {
  const clock = new VirtualClock();
  const options = { baseUrl: url, timeout: 20, userAgent: "carillon/test", clock, log: silentLog };
  return { clock, provider: new ExpoPush({ ...options, ...more }) };
}

/** A small Expo: tickets, receipts, and the faults that the suite asks for. */
async function openFakeExpo() {
  const tickets = new Map<string, string>();
  const accepted: string[] = [];
  const [ticketErrors, receiptErrors] = [new Map<string, string>(), new Map<string, string>()];
  const never = new Set<string>();
  let ready = false;
  let malformed: "json" | "structure" | "count" | undefined;
  const errorItem = (error: string) => ({ status: "error", message: error, details: { error } });
  const ticketFor = ({ to }: Item) => {
    const error = ticketErrors.get(to);
    if (error !== undefined) return errorItem(error);
    const id = `ticket-${tickets.size}`;
    tickets.set(id, to);
    accepted.push(to);
    return { status: "ok", id };
  };
  const receiptFor = (id: string) => {
    const token = tickets.get(id) ?? "";
    const error = receiptErrors.get(token);
    if (never.has(token) || !ready) return [];
    return [[id, error === undefined ? { status: "ok" } : errorItem(error)]];
  };
  const answer: Answering = (request, response) => {
    const body = JSON.parse(request.body.toString());
    const data = request.path.endsWith("/send")
      ? body.map(ticketFor)
      : Object.fromEntries(body.ids.flatMap(receiptFor));
    const how = malformed;
    malformed = undefined;
    if (how === "json") return answersText(200, "<html>")(request, response);
    if (how === "structure") return answersJson(200, { data: "none" })(request, response);
    if (how === "count") return answersJson(200, { data: data.slice(1) })(request, response);
    const packed = gzipSync(JSON.stringify({ data }));
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(packed);
  };
  const server = await startServer(answer);
  return {
    provider: expoAt(server.url).provider,
    control: {
      failNext: (status: number) => void server.once.push(answersText(status, "no")),
      dropNext: () =>
        void server.once.push((request, response) => {
          for (const item of JSON.parse(request.body.toString()) as Item[]) ticketFor(item);
          response.socket?.destroy();
        }),
      malformNext: (how: "json" | "structure" | "count") => {
        malformed = how;
      },
      ticketError: (token: string, name: string) => void ticketErrors.set(token, name),
      receiptError: (token: string, name: string) => void receiptErrors.set(token, name),
      receiptNever: (token: string) => void never.add(token),
      receiptsReady: () => {
        ready = true;
      },
      accepted: () => accepted,
    },
    close: server.close,
  };
}

pushConformance("the Expo client", { open: openFakeExpo });

describe("the Expo client on the wire", () => {
  let server: FixtureServer;
  beforeAll(async () => {
    server = await startServer(answersJson(200, { data: [{ status: "ok", id: "a" }] }));
  });
  afterAll(() => server.close());
  const message = { to: "ExponentPushToken[a]", title: "T", body: "B", channelId: "alarms" };

  test("sends packed JSON with its headers, and names itself", async () => {
    const { provider } = expoAt(`${server.url}/`, { accessToken: "secret" });
    await provider.send([message]);
    await provider.send([{ ...message, channelId: null }]);
    const [first, second] = server.requests.slice(-2);
    expect(first).toMatchObject({
      method: "POST",
      path: "/--/api/v2/push/send",
      headers: {
        authorization: "Bearer secret",
        "content-type": "application/json",
        "content-encoding": "gzip",
        accept: "application/json",
        "accept-encoding": "gzip, deflate",
        "user-agent": "carillon/test",
      },
    });
    expect(JSON.parse(first!.body.toString())).toEqual([message]);
    expect(JSON.parse(second!.body.toString())).toEqual([{ to: message.to, title: "T", body: "B" }]);
    expect(second!.port).toBe(first!.port);
  });

  test("asks for each receipt once and without a token when none is set", async () => {
    server.once.push(answersJson(200, { data: { a: { status: "ok" }, stranger: { status: "ok" } } }));
    const receipts = await expoAt(server.url).provider.receipts(["a", "a", "b"]);
    const request = server.requests.at(-1)!;
    expect(request.path).toBe("/--/api/v2/push/getReceipts");
    expect(JSON.parse(request.body.toString())).toEqual({ ids: ["a", "b"] });
    expect(request.headers.authorization).toBeUndefined();
    expect([...receipts.keys()]).toEqual(["a", "b"]);
  });

  test("gives up after its timeout, by the clock of the house", async () => {
    server.once.push(isSilent);
    const { clock, provider } = expoAt(server.url);
    const before = server.requests.length;
    const sending = provider.send([message]);
    await eventually(() => server.requests.length > before && clock.sleeping === 1);
    await clock.advance(20);
    const timedOut = { ok: false, identifier: "NetworkError", retryable: true, extra: "no answer within 20 s" };
    expect(await sending).toEqual([expect.objectContaining(timedOut)]);
    expect(clock.sleeping).toBe(0);
  });

  test.each<[string, Answering]>([
    ["is cut before an answer", hangsUp],
    ["is cut within an answer", breaksOff],
  ])("knows nothing when the connection %s", async (_, fault) => {
    server.once.push(fault);
    const [outcome] = await expoAt(server.url).provider.send([message]);
    expect(outcome).toMatchObject({ identifier: "NetworkError", retryable: true, backoff: true, ticket: null });
    expect((outcome as { extra: string }).extra).not.toBe("");
  });

  test("knows nothing when nobody listens", async () => {
    const gone = await startServer(isSilent);
    await gone.close();
    const [outcome] = await expoAt(gone.url).provider.send([message]);
    expect(outcome).toMatchObject({
      identifier: "NetworkError",
      extra: expect.stringContaining("ECONNREFUSED"),
      untaken: true,
    });
  });

  test("does not follow a redirect, which would carry the token elsewhere", async () => {
    const before = server.requests.length;
    server.once.push(answersText(302, "", { location: `${server.url}/elsewhere` }));
    const [outcome] = await expoAt(server.url, { accessToken: "secret" }).provider.send([message]);
    expect(outcome).toMatchObject({ identifier: "ClientErrorOther", retryable: false, extra: "302" });
    expect(server.requests).toHaveLength(before + 1);
  });

  test.each<[string, unknown, string]>([
    ["a list", [], "the answer is not an object"],
    ["no data", {}, "data is not an array"],
    ["errors beside data", { data: [{ status: "ok", id: "a" }], errors: [{ code: "X" }] }, '{"errors":[{"code":"X"}]}'],
    ["an item that is no object", { data: [7] }, "7"],
    ["an unknown status", { data: [{ status: "fine" }] }, '{"status":"fine"}'],
    ["a ticket without an id", { data: [{ status: "ok" }] }, '{"status":"ok"}'],
    ["a ticket whose id is a number", { data: [{ status: "ok", id: 7 }] }, '{"status":"ok","id":7}'],
    ["an error of another name", { data: [{ status: "error", details: { error: "Odd" } }] }, "Odd"],
    ["an error without a name", { data: [{ status: "error", message: "?" }] }, '{"status":"error","message":"?"}'],
  ])("takes an answer to a send with %s as final", async (_, body, extra) => {
    server.once.push(answersJson(200, body));
    const [outcome] = await expoAt(server.url).provider.send([message]);
    expect(outcome).toMatchObject({ ok: false, identifier: "InternalError", retryable: false, extra });
  });

  test.each<[string, unknown, string]>([
    ["a list for data", { data: [] }, "data is not an object"],
    ["a receipt that is no object", { data: { a: "ok" } }, "ok"],
    ["a receipt of unknown status", { data: { a: { status: "maybe" } } }, '{"status":"maybe"}'],
    ["an error of another name", { data: { a: { status: "error", details: { error: "Odd" } } } }, "Odd"],
  ])("takes an answer about receipts with %s as final", async (_, body, extra) => {
    server.once.push(answersJson(200, body));
    const outcome = (await expoAt(server.url).provider.receipts(["a"])).get("a");
    expect(outcome).toMatchObject({ ok: false, identifier: "InternalError", retryable: false, extra });
  });

  test("sends tokens of several projects apart, so that a foreign one fails nobody else", async () => {
    const token = (name: string) => `ExponentPushToken[${name}]`;
    const refusal = {
      code: "PUSH_TOO_MANY_EXPERIENCE_IDS",
      message: "All push notification messages in the same request must be for the same project",
      details: { "@us/app": [token("a"), token("c")], "@them/app": [token("b")] },
    };
    const tickets: Answering = (request, response) => {
      const tokens = (JSON.parse(request.body.toString()) as Item[]).map(({ to }) => to);
      if (tokens.includes(token("b"))) return answersJson(503, {})(request, response);
      answersJson(200, { data: tokens.map((id) => ({ status: "ok", id })) })(request, response);
    };
    server.once.push(answersJson(400, { errors: [refusal] }), tickets, tickets);
    const outcomes = await expoAt(server.url).provider.send(
      ["a", "b", "c", "d"].map((name) => ({ ...message, to: token(name) })),
    );
    expect(outcomes[0]).toMatchObject({ ok: true, ticket: { id: token("a") } });
    expect(outcomes[1]).toMatchObject({ identifier: "ServerError", retryable: true });
    expect(outcomes[2]).toMatchObject({ ok: true, ticket: { id: token("c") } });
    expect(outcomes[3]).toMatchObject({ identifier: "ClientErrorOther", retryable: false, extra: "400" });
  });
});
