import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { VirtualClock } from "../kernel/clock.ts";
import { type EmailFault, emailConformance, testMail } from "./email.conformance.ts";
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
import { SesEmail, type SesOptions, sesFailure } from "./ses.ts";

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };

function sesAt(endpoint: string, more: Partial<SesOptions> = {}) {
  const clock = new VirtualClock();
  const options = { region: "eu-west-1", endpoint, credentials, timeout: 10, userAgent: "carillon/test", clock };
  return { clock, provider: new SesEmail({ ...options, ...more }) };
}

const refuses = (status: number, type: string, message = "no"): Answering =>
  answersJson(status, { message }, { "x-amzn-errortype": type });

const FAULTS: Record<EmailFault, Answering> = {
  throttle: refuses(429, "TooManyRequestsException"),
  server: refuses(503, "ServiceUnavailable"),
  rejected: refuses(400, "MessageRejected", "Email address is not verified."),
  credentials: refuses(403, "UnrecognizedClientException"),
  reset: hangsUp,
};

emailConformance("the SES client", {
  async open() {
    const accepted: { to: string; mime: string }[] = [];
    const server = await startServer((request, response) => {
      const { Destination, Content } = JSON.parse(request.body.toString());
      accepted.push({ to: Destination.ToAddresses[0], mime: Buffer.from(Content.Raw.Data, "base64").toString() });
      answersJson(200, { MessageId: `id-${accepted.length}` })(request, response);
    });
    return {
      provider: sesAt(server.url).provider,
      control: {
        failNext: (fault: EmailFault) => void server.once.push(FAULTS[fault]),
        accepted: () => accepted,
      },
      close: server.close,
    };
  },
});

describe("the SES client on the wire", () => {
  let server: FixtureServer;
  beforeAll(async () => {
    server = await startServer(answersJson(200, { MessageId: "0100" }));
  });
  afterAll(() => server.close());
  const mail = testMail("a@example.org");
  const sendOnce = async (answer: Answering) => {
    server.once.push(answer);
    const { provider } = sesAt(server.url);
    const outcome = await provider.send(mail);
    await provider.close();
    return outcome;
  };

  test("posts the raw mail with its tags and configuration set, signed", async () => {
    const { provider } = sesAt(server.url, { configurationSet: "receipts" });
    const outcome = await provider.send({ ...mail, tags: { template: "dailyReminder", uid: "crl_em_1" } });
    expect(outcome).toEqual({ ok: true, messageId: "0100", hasReceipts: true });
    const request = server.requests.at(-1)!;
    expect(request).toMatchObject({ method: "POST", path: "/v2/email/outbound-emails" });
    expect(request.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/ses\//);
    expect(request.headers["user-agent"]).toContain("carillon/test");
    expect(JSON.parse(request.body.toString())).toEqual({
      FromEmailAddress: "The House <house@example.com>",
      Destination: { ToAddresses: ["a@example.org"] },
      Content: { Raw: { Data: mail.mime.toString("base64") } },
      ConfigurationSetName: "receipts",
      EmailTags: [
        { Name: "template", Value: "dailyReminder" },
        { Name: "uid", Value: "crl_em_1" },
      ],
    });
    await provider.close();
  });

  const backoff = { retryable: true, backoff: true };
  test.each<[number, string, string, object]>([
    [429, "TooManyRequestsException", "slow", { identifier: "SESTooManyRequestsException", ...backoff }],
    [400, "ThrottlingException", "slow", { identifier: "SESTooManyRequestsException", ...backoff }],
    [400, "LimitExceededException", "too many", { identifier: "SESTooManyRequestsException", ...backoff }],
    [
      400,
      "MessageRejected",
      "Maximum sending rate exceeded.",
      { identifier: "SESTooManyRequestsException", ...backoff },
    ],
    [
      400,
      "MessageRejected",
      "Daily message quota exceeded.",
      { identifier: "SESTooManyRequestsException", ...backoff },
    ],
    [500, "InternalFailure", "oh", { identifier: "SESServerError", outage: true, ...backoff }],
    [502, "BadGateway", "oh", { identifier: "SESServerError", outage: true, ...backoff }],
    [400, "MessageRejected", "content", { identifier: "SESClientError", retryable: false }],
    [400, "BadRequestException", "what", { identifier: "SESClientError", retryable: false }],
    [404, "NotFoundException", "no such set", { identifier: "SESClientError", retryable: false }],
    [400, "AccountSuspendedException", "no", { identifier: "SESClientError", retryable: false, accountStopped: true }],
    [400, "SendingPausedException", "no", { identifier: "SESClientError", retryable: false, accountStopped: true }],
    [400, "MailFromDomainNotVerifiedException", "no", { identifier: "SESClientError", accountStopped: true }],
    [403, "ExpiredTokenException", "no", { identifier: "SESClientError", credentials: true }],
    [403, "SignatureDoesNotMatch", "no", { identifier: "SESClientError", credentials: true }],
    [400, "AccessDeniedException", "no", { identifier: "SESClientError", credentials: true }],
    [403, "SomethingNew", "no", { identifier: "SESClientError", credentials: true }],
  ])("an answer of %i %s (%s) has its meaning", async (status, type, message, expected) => {
    const outcome = await sendOnce(refuses(status, type, message));
    expect(outcome).toMatchObject({ ok: false, subidentifier: type, ...expected });
    expect((outcome as { extra: string }).extra).toContain(message);
  });

  test("a page of HTML from a proxy counts by its status", async () => {
    expect(await sendOnce(answersText(502, "<html>bad gateway</html>"))).toMatchObject({
      identifier: "SESServerError",
      retryable: true,
      outage: true,
    });
  });

  test("an acceptance without a message id is final, because nobody could follow it", async () => {
    for (const answer of [answersJson(200, {}), answersText(200, "not json")])
      expect(await sendOnce(answer)).toMatchObject({ identifier: "SESInternalError", retryable: false });
  });

  test("an answer that breaks off leaves the outcome open", async () => {
    expect(await sendOnce(breaksOff)).toMatchObject({ identifier: "SESNetworkError", retryable: true });
  });

  test("a server that nobody can reach is a connection error", async () => {
    const gone = await startServer(isSilent);
    await gone.close();
    const { provider } = sesAt(gone.url);
    expect(await provider.send(mail)).toMatchObject({
      identifier: "SESNetworkError",
      subidentifier: "ConnectionError",
      retryable: true,
      backoff: true,
      untaken: true,
    });
  });

  test("gives up a mail after its timeout, by the clock of the house", async () => {
    server.once.push(isSilent);
    const { clock, provider } = sesAt(server.url);
    const before = server.requests.length;
    const sending = provider.send(mail);
    await eventually(() => server.requests.length > before && clock.sleeping === 1);
    await clock.advance(10);
    expect(await sending).toMatchObject({
      identifier: "SESNetworkError",
      subidentifier: "TimeoutError",
      extra: "no answer within 10 s",
    });
    await provider.close();
  });

  test("credentials that cannot be had put the mail back instead of failing it", async () => {
    const nowhere = async () => {
      throw Object.assign(new Error("no credentials here"), { name: "CredentialsProviderError" });
    };
    const { provider } = sesAt(server.url, { credentials: nowhere as never });
    const before = server.requests.length;
    expect(await provider.send(mail)).toMatchObject({ credentials: true, subidentifier: "CredentialsProviderError" });
    expect(server.requests).toHaveLength(before);
  });

  test("the quota is read once in ten minutes, and a refusal to tell it stops nothing", async () => {
    const account = { SendQuota: { Max24HourSend: 200, MaxSendRate: 14, SentLast24Hours: 3 }, SendingEnabled: true };
    const { clock, provider } = sesAt(server.url);
    server.once.push(answersJson(200, account));
    const quota = { maxPerSecond: 14, max24h: 200, sent24h: 3, sendingEnabled: true };
    expect(await provider.quota()).toEqual(quota);
    expect(server.requests.at(-1)).toMatchObject({ method: "GET", path: "/v2/email/account" });
    const before = server.requests.length;
    await clock.advance(599);
    expect(await provider.quota()).toEqual(quota);
    expect(server.requests).toHaveLength(before);
    await clock.advance(2);
    server.once.push(refuses(403, "AccessDeniedException"));
    expect(await provider.quota()).toBeUndefined();
    expect(server.requests).toHaveLength(before + 1);
    await provider.close();
  });
});

test("what is not an error of SES at all is a fault of ours, and final", () => {
  expect(sesFailure(new TypeError("broken"))).toEqual({
    ok: false,
    identifier: "SESInternalError",
    subidentifier: "TypeError",
    retryable: false,
    extra: "broken",
  });
});
