import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DATA_RAW_LIMIT, dataRawErrors, decodeDataRaw, encodeDataRaw } from "./index.ts";

const story = { email: { uid: "crl_em_1", subject: "Grüße 🎉", retry: 0 }, info: { step: "send", extra: null } };
const gzipped = (json: string | Buffer, level = 6) => gzipSync(json, { level }).toString("base64url");
const refusal = (call: () => unknown) => {
  try {
    call();
  } catch (error) {
    return dataRawErrors.bad_data_raw.matches(error) ? error.message : error;
  }
  return "accepted";
};

describe("data_raw", () => {
  test("whatever JSON goes in comes out, through our reader and through zlib alike", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(6000), (value, padding) => {
        const carried = { value, filler: "é".repeat(padding) };
        const text = encodeDataRaw(carried);
        const plain = JSON.parse(JSON.stringify(carried));
        expect(decodeDataRaw(text)).toEqual(plain);
        expect(JSON.parse(gunzipSync(Buffer.from(text, "base64url")).toString())).toEqual(plain);
      }),
      { numRuns: 200 },
    );
  });

  test("what any gzip writer made is read, at every level, with or without padding", () => {
    for (const level of [0, 1, 6, 9]) {
      const bare = gzipped(JSON.stringify(story), level);
      expect(decodeDataRaw(bare)).toEqual(story);
      expect(decodeDataRaw(bare + "=".repeat((4 - (bare.length % 4)) % 4))).toEqual(story);
    }
  });

  test("the text is URL-safe, padded to a multiple of four, and the same for the same story", () => {
    for (let length = 0; length < 12; length++) {
      const text = encodeDataRaw("?".repeat(length));
      expect(text).toMatch(/^[A-Za-z0-9_-]+={0,2}$/);
      expect(text.length % 4).toBe(0);
      expect(decodeDataRaw(text.replaceAll("=", ""))).toBe("?".repeat(length));
    }
    expect(encodeDataRaw(story)).toBe(encodeDataRaw(story));
  });

  test("long stories are compressed", () => {
    expect(encodeDataRaw("a".repeat(60_000)).length).toBeLessThan(500);
  });

  test("a story above the limit is neither written nor read, whichever way it was packed", () => {
    const most = "a".repeat(DATA_RAW_LIMIT - 2);
    expect(decodeDataRaw(encodeDataRaw(most))).toBe(most);
    expect(refusal(() => encodeDataRaw(`${most}a`))).toMatch("would be 65537 bytes");
    expect(refusal(() => decodeDataRaw(gzipped(JSON.stringify(`${most}a`))))).toMatch("larger than 65536");
    expect(refusal(() => decodeDataRaw(gzipped(Buffer.alloc(50_000_000, " "))))).toMatch("larger than 65536");
    expect(refusal(() => decodeDataRaw(encodeDataRaw("a".repeat(1000)), { maxBytes: 1000 }))).toMatch(
      "larger than 1000",
    );
    const large = "a".repeat(200_000);
    expect(decodeDataRaw(encodeDataRaw(large, { maxBytes: 1_048_576 }), { maxBytes: 1_048_576 })).toBe(large);
  });

  test("damage of any single byte is noticed", () => {
    const packed = Buffer.from(encodeDataRaw(story), "base64url");
    for (let at = 0; at < packed.length; at++) {
      const damaged = Buffer.from(packed);
      damaged[at]! ^= 0x02;
      // The header's time and system say nothing about the content.
      if (at >= 4 && at <= 9) expect(decodeDataRaw(damaged.toString("base64url"))).toEqual(story);
      else expect(refusal(() => decodeDataRaw(damaged.toString("base64url")))).toMatch(/^data_raw /);
    }
  });

  test("text that is not base64, not gzip, not UTF-8 or not JSON is refused by name", () => {
    expect(refusal(() => decodeDataRaw(""))).toMatch("URL-safe base64");
    expect(refusal(() => decodeDataRaw("a+b/"))).toMatch("URL-safe base64");
    expect(refusal(() => decodeDataRaw("aGVsbG8="))).toMatch("not gzip");
    expect(refusal(() => decodeDataRaw(gzipped("{")))).toMatch("no JSON");
    expect(refusal(() => decodeDataRaw(gzipped(Buffer.from([0x22, 0xff, 0x22]))))).toMatch("no JSON");
    expect(() => encodeDataRaw(undefined)).toThrow(TypeError);
  });
});
