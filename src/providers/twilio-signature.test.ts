import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isTwilioSignature, signTwilioRequest, verifyTwilioSignature } from "./twilio-signature.ts";

const token = "12345";
const hmac = (text: string, key = token) => createHmac("sha1", key).update(text, "utf8").digest("base64");
const request = {
  publicUrl: "https://app.example",
  path: "/api/1/sms/webhook?x=1",
  fields: [
    ["To", "+18005551212"],
    ["Body", "Grüße 🎉"],
    ["ErrorCode", ""],
    ["a", "lower case comes last"],
  ] as const,
};
const signed = "BodyGrüße 🎉ErrorCodeTo+18005551212alower case comes last";

test("the example of Twilio's own documentation has its signature", () => {
  const fields = Object.entries({
    CallSid: "CA1234567890ABCDE",
    Caller: "+14158675309",
    Digits: "1234",
    From: "+14158675309",
    To: "+18005551212",
  });
  const documented = { publicUrl: "https://mycompany.com", path: "/myapp.php?foo=1&bar=2", fields };
  expect(signTwilioRequest(token, documented)).toBe("RSOYDt4T1cUTdK1PDd93/VVr8B8=");
  expect(verifyTwilioSignature(token, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", documented)).toBe(true);
});

test("names are sorted by code unit, blank values are part of the text", () => {
  expect(signTwilioRequest(token, request)).toBe(hmac(`https://app.example/api/1/sms/webhook?x=1${signed}`));
});

test("the default port may be spelled out or left out on either side", () => {
  const bare = hmac(`https://app.example/api/1/sms/webhook?x=1${signed}`);
  const spelled = hmac(`https://app.example:443/api/1/sms/webhook?x=1${signed}`);
  for (const publicUrl of ["https://app.example", "https://app.example:443", "https://app.example/below/"]) {
    expect(verifyTwilioSignature(token, bare, { ...request, publicUrl })).toBe(true);
    expect(verifyTwilioSignature(token, spelled, { ...request, publicUrl })).toBe(true);
  }
  const plain = hmac(`http://app.example:80/api/1/sms/webhook?x=1${signed}`);
  expect(verifyTwilioSignature(token, plain, { ...request, publicUrl: "http://app.example" })).toBe(true);
  expect(verifyTwilioSignature(token, plain, request)).toBe(false);
});

test("another port than the default must be there", () => {
  const there = hmac(`https://app.example:8443/api/1/sms/webhook?x=1${signed}`);
  const publicUrl = "https://app.example:8443";
  expect(verifyTwilioSignature(token, there, { ...request, publicUrl })).toBe(true);
  const bare = hmac(`https://app.example/api/1/sms/webhook?x=1${signed}`);
  expect(verifyTwilioSignature(token, bare, { ...request, publicUrl })).toBe(false);
});

test("what is not base64 of twenty bytes is no signature", () => {
  const right = signTwilioRequest(token, request);
  expect(isTwilioSignature(right)).toBe(true);
  for (const wrong of ["", right.slice(1), `${right}=`, right.replace("=", ""), `${right}\n`, "!".repeat(28)]) {
    expect(isTwilioSignature(wrong)).toBe(false);
    expect(verifyTwilioSignature(token, wrong, request)).toBe(false);
  }
});

test("any change of token, path, host or field breaks the signature", () => {
  const name = fc.string({ minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(name, fc.string()), { minLength: 1, maxLength: 6, selector: ([key]) => key }),
      fc.webPath(),
      fc.nat(),
      (fields, path, at) => {
        const whole = { publicUrl: "https://app.example", path: `/${path}`, fields };
        const signature = signTwilioRequest(token, whole);
        const changed = fields.map(([key, value], index): [string, string] => [
          key,
          index === at % fields.length ? `${value}x` : value,
        ]);
        expect(verifyTwilioSignature(token, signature, { ...whole, fields: [...fields].reverse() })).toBe(true);
        expect(verifyTwilioSignature(token, signature, { ...whole, fields: changed })).toBe(false);
        expect(verifyTwilioSignature(`${token}6`, signature, whole)).toBe(false);
        expect(verifyTwilioSignature(token, signature, { ...whole, path: `${whole.path}/` })).toBe(false);
        expect(verifyTwilioSignature(token, signature, { ...whole, publicUrl: "https://app.example.org" })).toBe(false);
      },
    ),
    { numRuns: 100 },
  );
});

test("texts and tokens of any length have the signature that the algorithm gives them", () => {
  const whole = (body: string) => ({ publicUrl: "https://app.example", path: "/", fields: [["Body", body]] as const });
  const lengths = fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 4_050, max: 4_110 }), fc.constant(20_000));
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, maxLength: 80, unit: "binary" }),
      lengths,
      fc.constantFrom("a", "ü", "🎉"),
      (key, length, sign) => {
        const body = sign.repeat(length);
        expect(signTwilioRequest(key, whole(body))).toBe(hmac(`https://app.example/Body${body}`, key));
      },
    ),
    { numRuns: 200 },
  );
});
