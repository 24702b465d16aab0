import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { VirtualClock } from "../kernel/clock.ts";
import { silentLog } from "../kernel/log.ts";
import {
  type Answering,
  answersJson,
  answersText,
  breaksOff,
  type FixtureServer,
  isSilent,
  startServer,
} from "./http-server.fixture.ts";
import { smsConformance } from "./sms.conformance.ts";
import { isKnownSmsStatus, smsCategory } from "./sms.ts";
import { TwilioSms } from "./twilio.ts";

const ACCOUNT = "AC00000000000000000000000000000000";
const MESSAGES = `/2010-04-01/Accounts/${ACCOUNT}/Messages`;
const sidOf = (count: number) => `SM${count.toString(16).padStart(32, "0")}`;

function twilioAt(url: string, log = silentLog) {
  const clock = new VirtualClock();
  const provider = new TwilioSms({
    baseUrl: url,
    accountSid: ACCOUNT,
    authToken: "a token",
    messagingServiceSid: "MG1",
    timeout: 20,
    userAgent: "carillon/test",
    clock,
    log,
  });
  return { clock, provider };
}

interface Kept {
  sid: string;
  to: string;
  body: string;
  status: string;
  error_code: number | null;
  date_created: string;
  date_updated: string;
}

/** A small Twilio: create, fetch, list, and the faults that the suite asks for. */
async function openFakeTwilio() {
  const messages: Kept[] = [];
  const ends = new Map<string, { status: string; code?: number }>();
  let now = 1_772_000_000;
  const date = () => new Date(now * 1000).toUTCString().replace("GMT", "+0000");
  const create = (body: Buffer): Kept => {
    const form = new URLSearchParams(body.toString());
    const kept: Kept = {
      sid: sidOf(messages.length),
      to: form.get("To") ?? "",
      body: form.get("Body") ?? "",
      status: "accepted",
      error_code: null,
      date_created: date(),
      date_updated: date(),
    };
    messages.push(kept);
    return kept;
  };
  const gone = new Set<string>();
  const server = await startServer((request, response) => {
    const { pathname, searchParams } = new URL(request.path, "http://twilio");
    if (request.method === "POST") return answersJson(201, create(request.body))(request, response);
    if (pathname === `${MESSAGES}.json`) {
      const found = messages.filter(({ to }) => to === searchParams.get("To")).reverse();
      return answersJson(200, { messages: found, next_page_uri: null })(request, response);
    }
    const found = messages.find(({ sid }) => pathname === `${MESSAGES}/${sid}.json` && !gone.has(sid));
    if (found) return answersJson(200, found)(request, response);
    answersJson(404, { code: 20404, message: "not found", status: 404 })(request, response);
  });
  return {
    provider: twilioAt(server.url).provider,
    control: {
      failNext: (status: number, code: number | null) =>
        void server.once.push(answersJson(status, code === null ? {} : { code, message: "no", status })),
      dropNext: () =>
        void server.once.push((request, response) => {
          create(request.body);
          response.socket?.destroy();
        }),
      endAs: (to: string, status: string, code?: number) => void ends.set(to, { status, code }),
      finish: () => {
        now += 10;
        for (const message of messages) {
          const { status, code } = ends.get(message.to) ?? { status: "delivered" };
          Object.assign(message, { status, error_code: code ?? null, date_updated: date() });
        }
      },
      forget: (sid: string) => void gone.add(sid),
      created: () => messages.map(({ to, body }) => ({ to, body })),
      now: () => now,
    },
    close: server.close,
  };
}

smsConformance("the Twilio client", { open: openFakeTwilio });

describe("the Twilio client on the wire", () => {
  let server: FixtureServer;
  const resource = {
    sid: sidOf(1),
    status: "accepted",
    error_code: null,
    error_message: null,
    date_updated: "Thu, 24 Aug 2023 05:01:45 +0000",
  };
  beforeAll(async () => {
    server = await startServer(answersJson(201, resource));
  });
  afterAll(() => server.close());
  const message = { to: "+12025550100", body: "Hello" };

  test("posts a form with basic authentication to the account's messages", async () => {
    const { provider } = twilioAt(`${server.url}/`);
    const outcome = await provider.create({ ...message, statusCallback: "https://us.example/api/1/sms/webhook" });
    expect(outcome).toEqual({
      ok: true,
      state: "pending",
      resource: {
        sid: sidOf(1),
        status: "accepted",
        errorCode: null,
        errorMessage: null,
        dateUpdated: 1_692_853_305,
      },
    });
    const request = server.requests.at(-1)!;
    expect(request).toMatchObject({
      method: "POST",
      path: `${MESSAGES}.json`,
      headers: {
        authorization: `Basic ${Buffer.from(`${ACCOUNT}:a token`).toString("base64")}`,
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "user-agent": "carillon/test",
      },
    });
    expect(Object.fromEntries(new URLSearchParams(request.body.toString()))).toEqual({
      MessagingServiceSid: "MG1",
      To: "+12025550100",
      Body: "Hello",
      StatusCallback: "https://us.example/api/1/sms/webhook",
    });
  });

  test.each<[string, object, object]>([
    ["already sent", { status: "sent" }, { ok: true, state: "succeeded" }],
    ["already delivered", { status: "delivered" }, { ok: true, state: "succeeded" }],
    ["of a status never heard of", { status: "teleported" }, { ok: true, state: "pending" }],
    ["scheduled", { status: "scheduled" }, { ok: true, state: "pending" }],
    [
      "failed with a code",
      { status: "failed", error_code: 30007, error_message: "filtered" },
      { ok: false, identifier: "ApplicationErrorOther", subidentifier: "30007", retryable: false, extra: "filtered" },
    ],
    [
      "failed without a code",
      { status: "undelivered" },
      { ok: false, identifier: "ApplicationErrorOther", subidentifier: "failure_status_without_error_code" },
    ],
    [
      "pending with a code",
      { error_code: "21610" },
      { ok: false, identifier: "ApplicationErrorOther", subidentifier: "21610" },
    ],
    [
      "limited in its rate",
      { error_code: 63017 },
      { ok: false, identifier: "ApplicationErrorRatelimit", subidentifier: "63017", retryable: true },
    ],
    ["without a sid", { sid: null }, { ok: false, identifier: "InternalError", retryable: false }],
    ["without a status", { status: 7 }, { ok: false, identifier: "InternalError", retryable: false }],
  ])("understands a created message that is %s", async (_, change, expected) => {
    server.once.push(answersJson(201, { ...resource, ...change }));
    expect(await twilioAt(server.url).provider.create(message)).toMatchObject(expected);
  });

  test("warns of a status never heard of, when a message is made and when it is asked about, and of no other", async () => {
    const warnings: unknown[][] = [];
    const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) } as typeof silentLog;
    const { provider } = twilioAt(server.url, log);
    const strange = { ...resource, status: "teleported" };
    server.once.push(answersJson(201, strange), answersJson(200, strange));
    expect(await provider.create(message)).toMatchObject({ ok: true, state: "pending" });
    expect(await provider.fetch(sidOf(1))).toMatchObject({ ok: true, resource: { status: "teleported" } });
    const warning = [{ sid: sidOf(1), status: "teleported" }, expect.stringContaining("not known")];
    expect(warnings).toEqual([warning, warning]);
    for (const status of ["accepted", "delivered"]) {
      server.once.push(answersJson(201, { ...resource, status }), answersJson(200, { ...resource, status }));
      await provider.create(message);
      await provider.fetch(sidOf(1));
    }
    expect(warnings).toHaveLength(2);
  });

  test("takes an answer that is not JSON as final", async () => {
    server.once.push(answersText(201, "<html>"), answersText(200, "<html>"), answersText(200, "{}"));
    const { provider } = twilioAt(server.url);
    expect(await provider.create(message)).toMatchObject({ identifier: "InternalError", retryable: false });
    expect(await provider.fetch(sidOf(1))).toMatchObject({ identifier: "InternalError", retryable: false });
    expect(await provider.list({ to: "+1", since: 0 })).toMatchObject({ identifier: "InternalError" });
  });

  test("a recipient that is forbidden does not look like wrong credentials", async () => {
    server.once.push(answersJson(403, { code: 21408, message: "no permission for this region", status: 403 }));
    const outcome = await twilioAt(server.url).provider.create(message);
    expect(outcome).toMatchObject({ identifier: "ApplicationErrorOther", subidentifier: "21408", retryable: false });
    expect(outcome).not.toHaveProperty("credentials");
  });

  test("a permanent refusal of the recipient asks nobody to wait", async () => {
    server.once.push(answersJson(400, { code: 21610, message: "stopped", status: 400 }));
    expect(await twilioAt(server.url).provider.create(message)).toEqual({
      ok: false,
      identifier: "ApplicationErrorOther",
      subidentifier: "21610",
      retryable: false,
      extra: "stopped",
    });
  });

  test("does not ask about what is not a sid", async () => {
    const before = server.requests.length;
    for (const sid of ["", "SM1", `${sidOf(1)}/..`, sidOf(1).toLowerCase(), `XX${"0".repeat(32)}`])
      expect(await twilioAt(server.url).provider.fetch(sid)).toMatchObject({ identifier: "InternalError" });
    expect(server.requests).toHaveLength(before);
  });

  test("gives up a create after its timeout, by the clock of the house", async () => {
    server.once.push(isSilent);
    const { clock, provider } = twilioAt(server.url);
    const before = server.requests.length;
    const creating = provider.create(message);
    await eventually(() => server.requests.length > before && clock.sleeping === 1);
    await clock.advance(20);
    expect(await creating).toMatchObject({ identifier: "NetworkError", extra: "no answer within 20 s" });
  });

  test("knows nothing when an answer breaks off", async () => {
    server.once.push(breaksOff);
    expect(await twilioAt(server.url).provider.fetch(sidOf(1))).toMatchObject({
      identifier: "NetworkError",
      retryable: true,
    });
  });

  test("reads pages until they are too old, from its own server only", async () => {
    const page = (from: number, next: string | null): Answering =>
      answersJson(200, {
        messages: [0, 1].map((at) => ({
          ...resource,
          sid: sidOf(from + at),
          to: "+12025550100",
          body: `text ${from + at}`,
          date_created: new Date((1_692_853_305 - (from + at) * 60) * 1000).toUTCString(),
        })),
        next_page_uri: next,
      });
    const { provider } = twilioAt(server.url);
    server.once.push(page(0, `${MESSAGES}.json?Page=1`), page(2, `${MESSAGES}.json?Page=2`), page(4, null));
    const before = server.requests.length;
    const listed = await provider.list({ to: "+12025550100", since: 1_692_853_305 - 2 * 60 });
    expect(listed.ok && listed.messages.map(({ body }) => body)).toEqual(["text 0", "text 1", "text 2"]);
    const asked = server.requests.slice(before).map(({ path }) => path);
    expect(asked).toEqual([`${MESSAGES}.json?To=%2B12025550100&PageSize=100`, `${MESSAGES}.json?Page=1`]);
    server.once.splice(0);
    server.once.push(page(0, "//elsewhere.example/Messages.json"));
    expect(await provider.list({ to: "+12025550100", since: 0 })).toMatchObject({ ok: true });
    expect(server.requests).toHaveLength(before + 3);
  });
});

test("every status has a category, and one never heard of is pending", () => {
  const seen = Object.fromEntries(
    [
      "accepted",
      "scheduled",
      "queued",
      "sending",
      "new",
      "sent",
      "delivered",
      "read",
      "failed",
      "canceled",
      "lost",
    ].map((status) => [status, smsCategory(status)]),
  );
  expect(seen).toEqual({
    accepted: "pending",
    scheduled: "pending",
    queued: "pending",
    sending: "pending",
    new: "pending",
    sent: "success",
    delivered: "success",
    read: "success",
    failed: "failure",
    canceled: "failure",
    lost: "failure",
  });
  expect(["undelivered", "lost", "new"].map(isKnownSmsStatus)).toEqual([true, false, false]);
});
