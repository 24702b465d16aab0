import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { kernelErrors } from "../errors.ts";
import type { Codec } from "./codec.ts";
import { blobFrame, chartFrame, datedFrame, headerFrame, jsonFrame, taggedFrame, uidFrame } from "./frames.ts";

const Header = z.object({ uid: z.string(), min_checked_at: z.number(), have_updated: z.boolean() });
const header = headerFrame(Header);
const dated = datedFrame(z.object({ items: z.array(z.number()) }));
const plain = jsonFrame(z.object({ user_sub: z.string() }));

const bytes = fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value));
const uid = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const date = fc.integer({ min: 0, max: 0xffff_fffe });
const headers = fc.record({
  uid,
  min_checked_at: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  have_updated: fc.boolean(),
});

function written<T>(codec: Codec<T>, value: T): Buffer {
  return Buffer.from(codec.encode(value) as Buffer);
}

function refuses<T>(codec: Codec<T>, raw: Buffer): void {
  let refusal: unknown;
  try {
    codec.decode(raw);
  } catch (error) {
    refusal = error;
  }
  expect(kernelErrors.undecodable.matches(refusal), `${raw.toString("hex")} was accepted`).toBe(true);
}

describe("frames of cache channels", () => {
  it("give back every value that was written, whatever it holds", () => {
    const roundTrip = <T>(codec: Codec<T>, values: fc.Arbitrary<T>) =>
      fc.assert(
        fc.property(values, (value) => {
          expect(codec.decode(written(codec, value))).toEqual(value);
        }),
        { numRuns: 200 },
      );
    roundTrip(header, fc.record({ header: headers, value: bytes }));
    roundTrip(
      taggedFrame,
      fc.oneof(
        fc.record({ kind: fc.constant("purge" as const), uid }),
        fc.record({ kind: fc.constant("fill" as const), uid, value: bytes }),
      ),
    );
    roundTrip(
      chartFrame,
      fc
        .tuple(date, date, bytes)
        .filter(([start, end]) => start < end)
        .map(([startDate, endDate, value]) => ({ startDate, endDate, blob: gzipSync(value) })),
    );
    roundTrip(blobFrame, fc.record({ uid, value: bytes }));
    roundTrip(dated, fc.record({ unixDate: date, value: fc.record({ items: fc.array(fc.integer()) }) }));
    roundTrip(plain, fc.record({ user_sub: uid }));
    roundTrip(uidFrame, uid);
  });

  it("never read past their end: any bytes decode to a value or are refused as undecodable", () => {
    for (const codec of [header, taggedFrame, chartFrame, blobFrame, dated, plain, uidFrame] as Codec<unknown>[])
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 64 }), (raw) => {
          try {
            codec.decode(Buffer.from(raw));
          } catch (error) {
            expect(kernelErrors.undecodable.matches(error)).toBe(true);
          }
        }),
        { numRuns: 300 },
      );
  });

  it("that lost their last byte are refused wherever a length says so", () => {
    const cut = <T>(codec: Codec<T>, value: T) => refuses(codec, written(codec, value).subarray(0, -1));
    cut(header, { header: { uid: "u", min_checked_at: 1.5, have_updated: false }, value: Buffer.alloc(0) });
    cut(taggedFrame, { kind: "purge", uid: "crl_ip_1" });
    cut(chartFrame, { startDate: 1, endDate: 2, blob: gzipSync("{}") });
    cut(blobFrame, { uid: "crl_t_1", value: Buffer.from("abc") });
    cut(dated, { unixDate: 1, value: { items: [] } });
    cut(plain, { user_sub: "s" });
  });

  it("that are shorter than their fixed part are refused", () => {
    for (const codec of [header, taggedFrame, chartFrame, blobFrame, dated, plain, uidFrame] as Codec<unknown>[])
      refuses(codec, Buffer.alloc(0));
    refuses(taggedFrame, Buffer.from([1, 0, 0, 0]));
    refuses(chartFrame, Buffer.alloc(15));
    refuses(dated, Buffer.from([0, 0, 0]));
  });

  it("refuse lengths beyond the end, even ones that no number can hold", () => {
    refuses(header, Buffer.from("ffffffff7b7d", "hex"));
    refuses(taggedFrame, Buffer.from("0100000009616263", "hex"));
    refuses(blobFrame, Buffer.from("0000000161ffffffffffffffff61", "hex"));
    refuses(chartFrame, Buffer.from("0000000100000002ffffffffffffffff1f8b", "hex"));
  });

  it("refuse bad JSON, JSON of another shape, and text that is not UTF-8", () => {
    refuses(header, Buffer.from("000000027b7b", "hex"));
    refuses(header, written(headerFrame(z.unknown()), { header: { uid: 1 }, value: Buffer.alloc(0) }));
    refuses(dated, Buffer.from("00000001", "hex"));
    refuses(plain, Buffer.from("done"));
    refuses(plain, Buffer.from('{"user_sub":"\xff"}', "latin1"));
    refuses(uidFrame, Buffer.from([0xff, 0xfe]));
  });

  it("refuse a tagged frame of a third kind, and a chart that is not gzip or spans no day", () => {
    refuses(taggedFrame, Buffer.from("020000000161", "hex"));
    refuses(chartFrame, written(chartFrame, { startDate: 1, endDate: 2, blob: Buffer.from("{}") }));
    refuses(chartFrame, written(chartFrame, { startDate: 2, endDate: 2, blob: gzipSync("{}") }));
  });

  it("ignore trailing bytes of a purge, a chart and a blob", () => {
    const tail = Buffer.from("tail");
    const purge = written(taggedFrame, { kind: "purge", uid: "a" });
    expect(taggedFrame.decode(Buffer.concat([purge, tail]))).toEqual({ kind: "purge", uid: "a" });
    const chart = written(chartFrame, { startDate: 1, endDate: 91, blob: gzipSync('{"labels":[]}') });
    expect(gunzipSync(chartFrame.decode(Buffer.concat([chart, tail])).blob).toString()).toBe('{"labels":[]}');
    const blob = written(blobFrame, { uid: "a", value: Buffer.from("v") });
    expect(blobFrame.decode(Buffer.concat([blob, tail])).value.toString()).toBe("v");
  });

  it("have exactly the byte layout that other programs on the channels expect", () => {
    expect(
      written(header, { header: { uid: "a", min_checked_at: 1.5, have_updated: true }, value: Buffer.from("v") }),
    ).toEqual(
      Buffer.concat([
        Buffer.from("00000034", "hex"),
        Buffer.from('{"uid":"a","min_checked_at":1.5,"have_updated":true}v'),
      ]),
    );
    expect(written(taggedFrame, { kind: "fill", uid: "ab", value: Buffer.from("v") }).toString("hex")).toBe(
      "0100000002616276",
    );
    expect(written(blobFrame, { uid: "a", value: Buffer.from("v") }).toString("hex")).toBe(
      "0000000161000000000000000176",
    );
    expect(written(chartFrame, { startDate: 1, endDate: 2, blob: Buffer.from("1f8b", "hex") }).toString("hex")).toBe(
      "000000010000000200000000000000021f8b",
    );
    expect(written(dated, { unixDate: 20_000, value: { items: [] } }).toString("latin1")).toBe(
      '\x00\x00\x4e\x20{"items":[]}',
    );
  });
});
