import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { silentLog } from "../kernel/log.ts";
import { testMail } from "../providers/email.conformance.ts";
import { ExpoPush } from "../providers/expo.ts";
import { SesEmail } from "../providers/ses.ts";
import { SmtpEmail } from "../providers/smtp.ts";
import { TwilioSms } from "../providers/twilio.ts";
import type { SesError } from "./aws-errors.ts";
import type { ExpoKnobs, TwilioKnobs } from "./knobs.ts";
import { openStage, type Stage } from "./stage.fixture.ts";

/** Every answer that a provider may give, provoked at its simulator and read by the real client, row by row. */
let stage: Stage;
let expo: ExpoPush;
let twilio: TwilioSms;
let ses: SesEmail;
let smtp: SmtpEmail;
beforeAll(async () => {
  stage = await openStage();
  const { url, smtpUrl } = stage.sandbox;
  const common = { baseUrl: url, timeout: 20, userAgent: "carillon/test", clock: stage.clock, log: silentLog };
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  expo = new ExpoPush(common);
  twilio = new TwilioSms({ ...common, ...stage.sandbox.twilio.account, messagingServiceSid: "MG1" });
  ses = new SesEmail({ ...common, region: "us-east-1", endpoint: url, credentials });
  smtp = new SmtpEmail({ host: "127.0.0.1", port: Number(new URL(smtpUrl).port), secure: false, timeout: 10 });
});
beforeEach(() => {
  stage.sandbox.knobs.reset();
  stage.sandbox.inbox.clear();
});
afterAll(async () => {
  await ses.close();
  await smtp.close();
  await stage.close();
});

const passing = { retryable: true, backoff: true };
const outage = { ...passing, outage: true };
/** The flags that an outcome has, so that a row also says which it has not. */
const flagsOf = (outcome: object) =>
  Object.fromEntries(
    Object.entries(outcome).filter(([name]) =>
      ["retryable", "backoff", "outage", "untaken", "credentials", "accountStopped", "unreachable"].includes(name),
    ),
  );
const final = { retryable: false };
const refusing = { retryable: false, credentials: true };

/** The wait for an answer that does not come: the client's patience is measured by the house's clock. */
async function withoutPatience<T>(asking: Promise<T>): Promise<T> {
  const done = asking.then(() => true);
  await eventually(async () => {
    await stage.clock.advance(1);
    return Promise.race([done, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]);
  });
  return asking;
}

describe("Expo", () => {
  const TOKEN = "ExponentPushToken[classified-1]";
  const send = async (to = TOKEN) => (await expo.send([{ to, title: "t", body: "b" }]))[0]!;
  const rows: [string, Partial<ExpoKnobs>, string, string | null, object][] = [
    ["a connection cut after acceptance", { dropConnectionAfterAccept: 1 }, "NetworkError", expect.any(String), outage],
    ["429", { failNext: { status: 429, count: 1 } }, "ClientError429", "hard", passing],
    ["302", { failNext: { status: 302, count: 1 } }, "ClientErrorOther", "302", final],
    ["400", { failNext: { status: 400, count: 1 } }, "ClientErrorOther", "400", final],
    ["404", { failNext: { status: 404, count: 1 } }, "ClientErrorOther", "404", final],
    ["401", { failNext: { status: 401, count: 1 } }, "ClientErrorOther", "401", refusing],
    ["500", { failNext: { status: 500, count: 1 } }, "ServerError", "500", outage],
    ["503", { failNext: { status: 503, count: 1 } }, "ServerError", "503", outage],
    ["what is not JSON", { malformed: "json" }, "InternalError", "the answer is not JSON", final],
    [
      "data of a wrong kind",
      { malformed: "structure" },
      "InternalError",
      expect.stringContaining("data is not"),
      final,
    ],
    [
      "errors beside the data",
      { malformed: "errors" },
      "InternalError",
      expect.stringContaining("SANDBOX_FAULT"),
      final,
    ],
    ["an item that makes no sense", { malformed: "item" }, "InternalError", expect.stringContaining("perhaps"), final],
  ];

  it.each(rows)("is understood when a send meets %s", async (_, knobs, identifier, extra, flags) => {
    stage.sandbox.knobs.patch({ expo: knobs });
    const outcome = await send();
    expect(outcome).toMatchObject({ ok: false, identifier, extra });
    expect(flagsOf(outcome)).toEqual(flags);
  });

  it.each(rows.slice(1))(
    "is understood when asking for receipts meets %s",
    async (_, knobs, identifier, extra, flags) => {
      const sent = await send();
      const id = sent.ok ? sent.ticket.id : "";
      stage.sandbox.knobs.patch({ expo: knobs });
      const outcome = (await expo.receipts([id])).get(id)!;
      expect(outcome).toMatchObject({ ok: false, identifier, extra });
      expect(flagsOf(outcome)).toEqual(flags);
    },
  );

  it("is understood when it gives too few tickets, or no answer in time", async () => {
    stage.sandbox.knobs.patch({ expo: { malformed: "count" } });
    expect(await send()).toMatchObject({
      identifier: "InternalError",
      retryable: false,
      extra: "0 tickets for 1 messages",
    });
    stage.sandbox.knobs.patch({ expo: { malformed: null, faultRates: { silence: 1 } } });
    expect(await withoutPatience(send())).toMatchObject({ identifier: "NetworkError", extra: "no answer within 20 s" });
  });

  it.each([
    ["DeviceNotRegistered", "DeviceNotRegistered", null],
    ["ProviderIsTired", "InternalError", "ProviderIsTired"],
  ])("is understood when a ticket has the error %s", async (error, identifier, extra) => {
    stage.sandbox.knobs.patch({ expo: { ticketErrors: { [TOKEN]: error } } });
    const outcome = await send();
    expect(outcome).toMatchObject({ identifier, extra, ticket: { details: { error } } });
    expect(flagsOf(outcome)).toEqual(final);
  });

  it.each([
    ["DeviceNotRegistered", "DeviceNotRegistered", null],
    ["MessageTooBig", "MessageTooBig", null],
    ["MessageRateExceeded", "MessageRateExceeded", null],
    ["MismatchSenderId", "MismatchSenderId", null],
    ["InvalidCredentials", "InvalidCredentials", null],
    ["ProviderIsTired", "InternalError", "ProviderIsTired"],
  ])("is understood when a receipt has the error %s", async (error, identifier, extra) => {
    const sent = await send(`ExponentPushToken[sandbox-receipt-${error}-1]`);
    const id = sent.ok ? sent.ticket.id : "";
    expect((await expo.receipts([id])).get(id)).toMatchObject({ identifier: "NotReadyYet", retryable: true });
    await stage.clock.advance(5);
    const outcome = (await expo.receipts([id])).get(id)!;
    expect(outcome).toMatchObject({ identifier, extra });
    expect(flagsOf(outcome)).toEqual(final);
  });

  it("knows its magic tokens", async () => {
    expect(await send("ExponentPushToken[sandbox-unregistered-1]")).toMatchObject({
      identifier: "DeviceNotRegistered",
    });
    const slow = await send("ExponentPushToken[sandbox-slow-1]");
    const id = slow.ok ? slow.ticket.id : "";
    await stage.clock.advance(3600);
    expect((await expo.receipts([id])).get(id)).toMatchObject({ identifier: "NotReadyYet" });
  });
});

describe("Twilio", () => {
  const NUMBER = "+12025550100";
  const create = (to = NUMBER) => twilio.create({ to, body: "Breathe" });
  const failing = (status: number, code: number | null): Partial<TwilioKnobs> => ({
    failNext: { status, code, count: 1 },
  });
  const ending = (status: "failed" | "undelivered" | "canceled", code?: number): Partial<TwilioKnobs> => ({
    stepSeconds: 0,
    finalStatus: { [NUMBER]: { status, code } },
  });

  it.each<[string, Partial<TwilioKnobs>, string, string | null, object]>([
    ["a connection cut after creation", { dropConnectionAfterCreate: 1 }, "NetworkError", null, outage],
    ["500 with a code", failing(500, 20500), "ServerError", "500", outage],
    ["503 without a code", failing(503, null), "ServerError", "503", outage],
    ["429 with a code", failing(429, 20001), "ApplicationErrorRatelimit", "20001", passing],
    ...[14107, 20429, 30022, 31206, 45010, 51002, 54009, 63017].map(
      (code): [string, Partial<TwilioKnobs>, string, string, object] => [
        `400 with the code ${code} about our pace`,
        failing(400, code),
        "ApplicationErrorRatelimit",
        String(code),
        passing,
      ],
    ),
    ["400 with another code", failing(400, 21610), "ApplicationErrorOther", "21610", final],
    ["429 without a code", failing(429, null), "ClientError429", null, passing],
    ["400 without a code", failing(400, null), "ClientErrorOther", "400", { ...final, backoff: true }],
    ["302 without a code", failing(302, null), "ClientErrorOther", "302", { ...final, backoff: true }],
    ["401", failing(401, 20003), "ApplicationErrorOther", "20003", refusing],
    ["403 about a recipient", failing(403, 21408), "ApplicationErrorOther", "21408", final],
    ["201 without a sid", { malformed: "structure" }, "InternalError", null, final],
    ["201 that is not JSON", { malformed: "json" }, "InternalError", null, final],
    ["201 with an error code", ending("failed", 30007), "ApplicationErrorOther", "30007", final],
    ["201 with a code about our pace", ending("failed", 30022), "ApplicationErrorRatelimit", "30022", passing],
    [
      "201 with a status of failure and no code",
      ending("canceled"),
      "ApplicationErrorOther",
      "failure_status_without_error_code",
      final,
    ],
  ])("is understood when a create meets %s", async (_, knobs, identifier, subidentifier, flags) => {
    stage.sandbox.knobs.patch({ twilio: knobs });
    const outcome = await create();
    expect(outcome).toMatchObject({ ok: false, identifier, subidentifier });
    expect(flagsOf(outcome)).toEqual(flags);
  });

  it.each([
    ["+15005550001", "21211"],
    ["+15005550002", "21612"],
    ["+15005550003", "21408"],
    ["+15005550004", "21610"],
    ["+15005550009", "21614"],
  ])("refuses the magic number %s with %s", async (number, subidentifier) => {
    expect(await create(number)).toMatchObject({
      identifier: "ApplicationErrorOther",
      subidentifier,
      retryable: false,
    });
  });

  it("is pending or has succeeded, by the status of what was created", async () => {
    for (const stuckAt of ["accepted", "queued", "sending"] as const) {
      stage.sandbox.knobs.patch({ twilio: { stepSeconds: 0, stuckAt } });
      expect(await create()).toMatchObject({ ok: true, state: "pending", resource: { status: stuckAt } });
    }
    for (const status of ["sent", "delivered", "read"] as const) {
      stage.sandbox.knobs.patch({ twilio: { stepSeconds: 0, stuckAt: null, finalStatus: { [NUMBER]: { status } } } });
      expect(await create()).toMatchObject({ ok: true, state: "succeeded", resource: { status } });
    }
  });

  it.each<[string, Partial<TwilioKnobs>, string, object]>([
    ["404", failing(404, 20404), "ClientError404", final],
    ["429", failing(429, 20429), "ClientError429", passing],
    ["400", failing(400, null), "ClientErrorOther", final],
    ["302", failing(302, null), "ClientErrorOther", final],
    ["500", failing(500, 20500), "ServerError", outage],
    ["a connection that breaks", { faultRates: { reset: 1 } }, "NetworkError", outage],
    ["what is not JSON", { malformed: "json" }, "InternalError", final],
    ["a resource without a sid", { malformed: "structure" }, "InternalError", final],
  ])("is understood when a look-up meets %s", async (_, knobs, identifier, flags) => {
    const created = await create();
    const sid = created.ok ? created.resource.sid : "";
    stage.sandbox.knobs.patch({ twilio: knobs });
    const fetched = await twilio.fetch(sid);
    expect(fetched).toMatchObject({ ok: false, identifier });
    expect(flagsOf(fetched)).toEqual(flags);
    stage.sandbox.knobs.patch({ twilio: knobs });
    expect(await twilio.list({ to: NUMBER, since: 0 })).toMatchObject({ ok: false, identifier });
  });

  it("is not asked about what is no sid, and is given up when it says nothing", async () => {
    stage.sandbox.knobs.patch({ twilio: { faultRates: { silence: 1 } } });
    expect(await twilio.fetch("SM12")).toMatchObject({ identifier: "InternalError", retryable: false });
    expect(await withoutPatience(create())).toMatchObject({
      identifier: "NetworkError",
      extra: "no answer within 20 s",
    });
  });
});

describe("the mail service", () => {
  const throttled = ["TooManyRequestsException", "ThrottlingException", "LimitExceededException"] as const;
  const keys = [
    "ExpiredTokenException",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "AccessDeniedException",
  ] as const;
  const stopped = [
    "AccountSuspendedException",
    "SendingPausedException",
    "MailFromDomainNotVerifiedException",
  ] as const;
  const row =
    (identifier: string, flags: object) =>
    (error: SesError): [SesError, string, string, object] => [error, identifier, error, flags];

  it.each<[SesError, string, string, object]>([
    ...throttled.map(row("SESTooManyRequestsException", passing)),
    ...(["InternalFailure", "ServiceUnavailable"] as const).map(row("SESServerError", outage)),
    ...(["MessageRejected", "BadRequestException", "NotFoundException"] as const).map(row("SESClientError", final)),
    ...stopped.map(row("SESClientError", { ...final, accountStopped: true })),
    ...keys.map(row("SESClientError", refusing)),
    ["reset", "SESNetworkError", "ConnectionError", outage],
    ["no-message-id", "SESInternalError", "NoMessageId", final],
  ])("is understood when it answers %s", async (error, identifier, subidentifier, flags) => {
    stage.sandbox.knobs.patch({ ses: { error, fail_next: 1 } });
    const outcome = await ses.send(testMail("ada@example.com"));
    expect(outcome).toMatchObject({ ok: false, identifier, subidentifier });
    expect(flagsOf(outcome)).toEqual(flags);
  });

  it("is given up when it took the mail and says nothing", async () => {
    stage.sandbox.knobs.patch({ ses: { error: "timeout-after-accept", fail_next: 1 } });
    const outcome = await withoutPatience(ses.send(testMail("ada@example.com")));
    expect(outcome).toMatchObject({ identifier: "SESNetworkError", subidentifier: "TimeoutError" });
    expect(flagsOf(outcome)).toEqual(outage);
    expect(stage.sandbox.inbox.size).toBe(1);
  });

  it("tells its quota, which is remembered", async () => {
    await ses.reset();
    stage.sandbox.knobs.patch({ ses: { max_per_second: 5, quota_24h: 100 } });
    expect(await ses.quota()).toMatchObject({ maxPerSecond: 5, max24h: 100, sendingEnabled: true });
    stage.sandbox.knobs.patch({ ses: { max_per_second: 9 } });
    expect(await ses.quota()).toMatchObject({ maxPerSecond: 5 });
    await stage.clock.advance(601);
    expect(await ses.quota()).toMatchObject({ maxPerSecond: 9 });
  });
});

describe("a mail server", () => {
  it.each<[SesError, string, string, object]>([
    ["throttle", "SESTooManyRequestsException", "SMTP454", passing],
    ["500", "SESServerError", "SMTP451", passing],
    ["503", "SESServerError", "SMTP421", { ...outage, untaken: true }],
    ["MessageRejected", "SESClientError", "SMTP554", final],
    ["credentials", "SESClientError", "SMTP535", refusing],
    ["reset", "SESNetworkError", "ConnectionError", outage],
  ])("is understood when it has the fault %s", async (error, identifier, subidentifier, flags) => {
    stage.sandbox.knobs.patch({ ses: { error, fail_next: 1 } });
    const outcome = await smtp.send(testMail("ada@example.com"));
    expect(outcome).toMatchObject({ ok: false, identifier, subidentifier });
    expect(flagsOf(outcome)).toEqual(flags);
  });

  it("tells a mailbox that does not exist from one that it will not write to", async () => {
    const gone = await smtp.send(testMail("bounce@simulator.amazonses.com"));
    expect([gone, flagsOf(gone)]).toMatchObject([{ subidentifier: "SMTP550" }, { ...final, unreachable: true }]);
    const listed = await smtp.send(testMail("suppressionlist@simulator.amazonses.com"));
    expect(flagsOf(listed)).toEqual(final);
  });
});
