import { X509Certificate } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { VirtualClock } from "../kernel/clock.ts";
import type { Fetch } from "./http-exchange.ts";
import { CERTIFICATE_URL, ellipticKeys, envelope, headersOf, rsaKeys, selfSigned, TOPIC } from "./sns.fixture.ts";
import { isPinned, SnsVerifier } from "./sns.ts";

const keys = rsaKeys();
const clock = new VirtualClock();
const life = { from: clock.now() - 86_400, to: clock.now() + 365 * 86_400 };
const certificate = selfSigned(keys, life);

let asked: string[];
let answers: (() => Response | Promise<Response>)[];
beforeEach(() => {
  asked = [];
  answers = [];
});
const fetch = (async (url: string, init?: RequestInit) => {
  expect(init?.redirect).toBe("manual");
  asked.push(String(url));
  return (answers.shift() ?? (() => new Response(certificate)))();
}) as Fetch;

const verifier = (more: { topicArns?: string[]; baseUrl?: string } = {}) =>
  new SnsVerifier({ topicArns: [TOPIC], clock, fetch, ...more });
const text = (body: unknown) => Buffer.from(JSON.stringify(body));
const verdict = async (sent: { body: object; headers: Record<string, string> }, by = verifier()) => {
  const answer = await by.verify(sent.headers, text(sent.body));
  return answer.ok ? "ok" : `${answer.counter} ${answer.status}`;
};
const signed = (change: Parameters<typeof envelope>[2] = {}) => envelope(keys.privateKey, clock.now(), change);

test("the certificates that these tests make are real ones", () => {
  const read = new X509Certificate(certificate);
  expect(read.verify(keys.publicKey)).toBe(true);
  expect(read.publicKey.asymmetricKeyType).toBe("rsa");
});

describe("an envelope with a real signature", () => {
  test.each([
    ["version 1", { SignatureVersion: "1" as const }],
    ["version 2", { SignatureVersion: "2" as const }],
    ["a subject", { Subject: "Amazon SES" }],
    ["letters of all kinds", { Message: '{"x":"Grüße 🎉\\n"}' }],
    ["a wish to subscribe", { Type: "SubscriptionConfirmation" as const }],
    ["a farewell", { Type: "UnsubscribeConfirmation" as const }],
  ])("is believed with %s", async (_, change) => {
    const { body, headers } = signed(change);
    expect(await verifier().verify(headers, text(body))).toEqual({ ok: true, envelope: body });
    expect(asked).toEqual([CERTIFICATE_URL]);
  });

  test("is believed when its absent subject is written as null", async () => {
    const { body, headers } = signed();
    expect(await verdict({ headers, body: { ...body, Subject: null } })).toBe("ok");
  });

  test.each(["Message", "MessageId", "Timestamp", "TopicArn", "Subject"] as const)(
    "is not believed once its %s was changed",
    async (field) => {
      const { body } = signed({ Subject: "s" });
      const changed = { ...body, [field]: field === "Timestamp" ? new Date(1).toISOString() : `${body[field]}x` };
      const by = verifier({ topicArns: [TOPIC, `${TOPIC}x`] });
      expect(await verdict({ body: changed, headers: headersOf(changed) }, by)).toBe("signature_invalid 403");
    },
  );

  test("is not believed when another key made it, or another version of signature is claimed", async () => {
    expect(await verdict(envelope(rsaKeys().privateKey, clock.now()))).toBe("signature_invalid 403");
    const { body, headers } = signed({ SignatureVersion: "1" });
    expect(await verdict({ headers, body: { ...body, SignatureVersion: "2" } })).toBe("signature_invalid 403");
  });

  test("is refused from a topic that is not ours, without any download", async () => {
    const foreign = signed({ TopicArn: "arn:aws:sns:us-east-1:999999999999:theirs" });
    expect(await verdict(foreign)).toBe("signature_invalid 403");
    expect(await verdict(signed(), verifier({ topicArns: [] }))).toBe("signature_invalid 403");
    expect(asked).toEqual([]);
  });

  test("is refused when it is older than 15 days or more than 15 minutes ahead", async () => {
    const at = (seconds: number) => verdict(envelope(keys.privateKey, clock.now() + seconds));
    expect(await at(-15 * 86_400 + 10)).toBe("ok");
    expect(await at(-15 * 86_400 - 10)).toBe("signature_invalid 403");
    expect(await at(14 * 60)).toBe("ok");
    expect(await at(16 * 60)).toBe("signature_invalid 403");
    expect(await verdict(signed({ Timestamp: "yesterday" }))).toBe("signature_invalid 403");
  });
});

describe("what cannot be an envelope", () => {
  const { body, headers } = signed();
  test.each<[string, Record<string, string>, string]>([
    ["an unknown type", { "x-amz-sns-message-type": "Gossip" }, "signature_missing 400"],
    ["an empty topic", { "x-amz-sns-topic-arn": "" }, "signature_missing 400"],
    ["an empty id", { "x-amz-sns-message-id": "" }, "signature_missing 400"],
    ["raw delivery", { "x-amz-sns-rawdelivery": "true" }, "signature_missing 400"],
    ["another type than the body", { "x-amz-sns-message-type": "UnsubscribeConfirmation" }, "body_parse_error 400"],
    ["another id than the body", { "x-amz-sns-message-id": "x" }, "signature_invalid 403"],
    ["another topic than the body", { "x-amz-sns-topic-arn": `${TOPIC}-2` }, "signature_invalid 403"],
  ])("headers with %s", async (_, change, expected) => {
    expect(await verdict({ body, headers: { ...headers, ...change } })).toBe(expected);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["no signature", { Signature: undefined }, "signature_missing 400"],
    ["no certificate", { SigningCertURL: undefined }, "signature_missing 400"],
    ["a third version", { SignatureVersion: "3" }, "body_parse_error 400"],
    ["a version as a number", { SignatureVersion: 2 }, "body_parse_error 400"],
    ["a signature that is not base64", { Signature: "***" }, "body_parse_error 400"],
    ["no message", { Message: undefined }, "body_parse_error 400"],
    ["a message that is no text", { Message: {} }, "body_parse_error 400"],
    ["a subject that is no text", { Subject: 7 }, "body_parse_error 400"],
  ])("a body with %s", async (_, change, expected) => {
    expect(await verdict({ headers, body: { ...body, ...change } })).toBe(expected);
    expect(asked).toEqual([]);
  });

  test("a body that is no JSON object in UTF-8", async () => {
    for (const raw of [Buffer.from("{"), Buffer.from("[]"), Buffer.from([0x22, 0xff, 0x22]), Buffer.alloc(0)])
      expect(await verifier().verify(headers, raw)).toMatchObject({ counter: "body_parse_error", status: 400 });
  });
});

test("certificates are fetched from Amazon's own address in the topic's region and from nowhere else", async () => {
  const path = "/SimpleNotificationService-1.pem";
  for (const url of [
    `https://sns.us-east-1.amazonaws.com.evil.test${path}`,
    `https://evil.test${path}`,
    `http://sns.us-east-1.amazonaws.com${path}`,
    `https://sns.us-east-1.amazonaws.com:8443${path}`,
    `https://user@sns.us-east-1.amazonaws.com${path}`,
    `https://sns.us-east-1.amazonaws.com${path}?x=1`,
    `https://sns.us-east-1.amazonaws.com${path}#x`,
    `https://sns.eu-west-1.amazonaws.com${path}`,
    "https://sns.us-east-1.amazonaws.com/other.pem",
    "https://sns.us-east-1.amazonaws.com/a/SimpleNotificationService-1.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem/..%2f",
    "not an address",
  ])
    expect(await verdict(signed({ SigningCertURL: url }))).toBe("signature_invalid 403");
  expect(asked).toEqual([]);
  const china = "arn:aws-cn:sns:cn-north-1:000000000000:mail";
  expect(isPinned(`https://sns.cn-north-1.amazonaws.com.cn${path}`, china)).toBe(true);
  expect(isPinned(`https://sns.cn-north-1.amazonaws.com${path}`, china)).toBe(false);
});

test("a base address replaces Amazon's, and only for who set it", async () => {
  const local = signed({ SigningCertURL: "http://127.0.0.1:9/SimpleNotificationService-sandbox.pem" });
  expect(await verdict(local)).toBe("signature_invalid 403");
  const by = verifier({ baseUrl: "http://127.0.0.1:9/sandbox" });
  expect(await verdict(local, by)).toBe("ok");
  expect(await verdict(signed(), by)).toBe("signature_invalid 403");
});

describe("the certificates of topics", () => {
  const keep = (header?: string) => () =>
    new Response(certificate, { headers: header === undefined ? {} : { "cache-control": header } });

  test.each<[string | undefined, number]>([
    [undefined, 600],
    ["max-age=1", 5],
    ["public, max-age=3600", 3600],
    ["max-age=99999999", 604_800],
    ["max-age=10, immutable", 604_800],
  ])("are kept with cache-control %s for %i seconds", async (header, seconds) => {
    const by = verifier();
    answers.push(keep(header));
    expect(await verdict(signed(), by)).toBe("ok");
    await clock.advance(seconds - 1);
    expect(await verdict(signed(), by)).toBe("ok");
    expect(asked).toHaveLength(1);
    await clock.advance(2);
    expect(await verdict(signed(), by)).toBe("ok");
    expect(asked).toHaveLength(2);
  });

  test("are downloaded once for envelopes that come together", async () => {
    const by = verifier();
    const fates = await Promise.all(Array.from({ length: 10 }, () => verdict(signed(), by)));
    expect(new Set(fates)).toEqual(new Set(["ok"]));
    expect(asked).toHaveLength(1);
  });

  test.each<[string, () => Response, string]>([
    ["the server is down", () => new Response("", { status: 503 }), "signature_invalid 503"],
    ["there is none", () => new Response("", { status: 404 }), "signature_invalid 403"],
    ["it redirects", () => new Response("", { status: 302, headers: { location: "/" } }), "signature_invalid 403"],
    ["it is no certificate", () => new Response("hello"), "signature_invalid 403"],
    ["it is far too long", () => new Response(`${certificate}${" ".repeat(65_536)}`), "signature_invalid 403"],
    ["it has another kind of key", () => new Response(selfSigned(ellipticKeys(), life)), "signature_invalid 403"],
    [
      "it is not valid yet",
      () => new Response(selfSigned(keys, { ...life, from: life.to - 1 })),
      "signature_invalid 403",
    ],
    [
      "it is valid no more",
      () => new Response(selfSigned(keys, { ...life, to: life.from + 1 })),
      "signature_invalid 403",
    ],
  ])("do not count when %s", async (_, answer, expected) => {
    const by = verifier();
    answers.push(answer);
    expect(await verdict(signed(), by)).toBe(expected);
    expect(asked).toHaveLength(1);
  });

  test("that cannot be downloaded make SNS come again", async () => {
    answers.push(() => Promise.reject(new TypeError("fetch failed")));
    const by = verifier();
    expect(await verdict(signed(), by)).toBe("signature_invalid 503");
    expect(await verdict(signed(), by)).toBe("ok");
  });
});

describe("a subscription", () => {
  const confirm = (change: Parameters<typeof envelope>[2] = {}) =>
    verifier().confirm(signed({ Type: "SubscriptionConfirmation", ...change }).body);

  test("is confirmed at Amazon's address, once", async () => {
    answers.push(() => new Response("<xml/>"));
    expect(await confirm()).toBe(true);
    expect(asked).toEqual(["https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=a"]);
  });

  test("is never confirmed elsewhere", async () => {
    expect(await confirm({ SubscribeURL: "https://evil.test/?Action=ConfirmSubscription" })).toBe(false);
    expect(await confirm({ SubscribeURL: "https://sns.us-east-1.amazonaws.com@evil.test/" })).toBe(false);
    expect(asked).toEqual([]);
  });

  test("is asked for again when the confirmation did not work", async () => {
    answers.push(() => new Response("", { status: 500 }));
    expect(await confirm()).toBe(false);
    answers.push(() => Promise.reject(new TypeError("fetch failed")));
    expect(await confirm()).toBe(false);
  });
});
