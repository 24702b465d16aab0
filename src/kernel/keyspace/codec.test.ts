import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import type { CarillonError } from "../errors.ts";
import { canonicalJson } from "./canonical.ts";
import {
  binary,
  type Codec,
  decimal,
  fields,
  integer,
  json,
  literal,
  mapOf,
  matching,
  optional,
  text,
  unsigned64,
} from "./codec.ts";

function roundTrip<T>(codec: Codec<T>, value: T): T {
  return codec.decode(Buffer.from(codec.encode(value)));
}

function hashRoundTrip<T>(
  codec: { encode(value: T): (string | Buffer)[]; decode(raw: Record<string, Buffer>): T },
  value: T,
) {
  const flat = codec.encode(value);
  const raw: Record<string, Buffer> = Object.create(null);
  for (let index = 0; index < flat.length; index += 2) raw[String(flat[index])] = Buffer.from(flat[index + 1]!);
  return codec.decode(raw);
}

const refuses = (codec: Codec<unknown>, ...written: (string | Buffer)[]) => {
  for (const raw of written)
    expect(() => codec.decode(Buffer.from(raw)), String(raw)).toThrow(
      expect.objectContaining({ code: "undecodable" }) as CarillonError,
    );
};

const anyText = fc.string({ unit: "grapheme" });

// Schemas drop a field named __proto__, for safety.
const jsonValues = fc
  .jsonValue()
  .map((value) => JSON.stringify(value))
  .filter((written) => !written.includes("__proto__"))
  .map((written) => JSON.parse(written));
const anyJson = json(z.json()) as Codec<unknown>;
const anyCanonicalJson = json(z.json(), { canonical: true }) as Codec<unknown>;

const roundTrips: [string, Codec<never>, fc.Arbitrary<unknown>][] = [
  ["text", text as Codec<never>, anyText],
  ["binary", binary as Codec<never>, fc.uint8Array().map((bytes) => Buffer.from(bytes))],
  ["integer", integer as Codec<never>, fc.maxSafeInteger().map((value) => value + 0)],
  ["unsigned64", unsigned64 as Codec<never>, fc.bigInt(0n, 0xffff_ffff_ffff_ffffn).map(String)],
  ["decimal", decimal as Codec<never>, fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)],
  ["literal", literal("1") as Codec<never>, fc.constant("1")],
  ["matching", matching(/^[a-f0-9]+$/, "hex") as Codec<never>, fc.stringMatching(/^[a-f0-9]+$/)],
  ["json", anyJson as Codec<never>, jsonValues],
  ["canonical json", anyCanonicalJson as Codec<never>, jsonValues],
];

test.each(roundTrips)("the %s codec gives back what it was given", (_name, codec, values) => {
  fc.assert(
    fc.property(values, (value) => {
      expect(roundTrip(codec, value as never)).toEqual(value);
    }),
    { numRuns: 200 },
  );
});

test("each codec refuses what has another shape", () => {
  refuses(text, Buffer.from([0xff, 0xfe]));
  refuses(integer, "", "1.5", "x", "9999999999999999", " 1", "0x10");
  refuses(unsigned64, "-1", "18446744073709551616", "");
  refuses(decimal, "", "NaN", "Infinity", "0x10", "1,5");
  refuses(literal("1"), "2", "");
  refuses(matching(/^a+$/, "only a"), "ab");
  refuses(json(z.object({ uid: z.string() })), "{", "{}", '{"uid":1}');
});

test("canonical JSON refuses other spellings of the same value", () => {
  const codec = json(z.object({ a: z.number(), b: z.number() }), { canonical: true });
  expect(codec.encode({ b: 2, a: 1 })).toBe('{"a":1,"b":2}');
  refuses(codec, '{"b":2,"a":1}', '{"a": 1,"b":2}');
});

test("canonical JSON of equal values is the same bytes, whatever the order of their keys", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const reversed = Object.fromEntries(Object.entries(value).reverse());
      expect(canonicalJson(reversed)).toBe(canonicalJson(value));
    }),
    { numRuns: 200 },
  );
});

test("canonical JSON sorts by code unit at every level, also keys that look like numbers", () => {
  const value = { b: [{ z: 1, a: undefined }], "9": 1, "10": 2, a: null, Z: 1e21 };
  expect(canonicalJson(value)).toBe('{"10":2,"9":1,"Z":1e+21,"a":null,"b":[{"z":1}]}');
  expect(canonicalJson(new Date(0))).toBe('"1970-01-01T00:00:00.000Z"');
  expect(() => canonicalJson(undefined)).toThrow(TypeError);
});

test("a hash with known fields gives back its fields, and leaves out absent optional ones", () => {
  const codec = fields({ name: text, tries: integer, error: optional(text) });
  fc.assert(
    fc.property(anyText, fc.maxSafeInteger(), fc.option(anyText, { nil: undefined }), (name, tries, error) => {
      const value = { name, tries: tries + 0, ...(error === undefined ? {} : { error }) };
      expect(hashRoundTrip(codec, value)).toEqual(value);
    }),
    { numRuns: 200 },
  );
  expect(() => codec.decode({ name: Buffer.from("n") })).toThrow(/tries is missing/);
  const whole = { name: Buffer.from("n"), tries: Buffer.from("1") };
  expect(() => codec.decode({ ...whole, extra: Buffer.from("x") })).toThrow(/unknown field extra/);
  expect(() => codec.decode({ ...whole, toString: Buffer.from("x") })).toThrow(/unknown field toString/);
});

test("a hash whose fields are data gives back every field", () => {
  const codec = mapOf(integer);
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.nat()), (value) => {
      expect(hashRoundTrip(codec, { ...value })).toEqual({ ...value });
    }),
    { numRuns: 200 },
  );
  expect(() => codec.decode({ a: Buffer.from("x") })).toThrow(/an integer/);
});

test("the shape of a JSON codec names the fields of its schema", () => {
  expect(json(z.object({ uid: z.string(), tries: z.number().optional() })).shape).toBe("JSON {uid, tries?}");
  expect(json(z.array(z.string())).shape).toBe("JSON list");
  expect(json(z.object({ a: z.string() }), { canonical: true }).shape).toBe("canonical JSON {a}");
  expect(json(z.string(), { shape: "JSON text" }).shape).toBe("JSON text");
});
