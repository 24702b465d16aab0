import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { type Codec, json, undecodable } from "./codec.ts";

/**
 * The seven shapes of messages on cache channels. All integers are big-endian and unsigned.
 *
 * A frame comes from another process, perhaps of another version, so decoding trusts nothing: a frame that ends early, a
 * length that points beyond the end, or text that is not what it claims to be raises `undecodable`, and never reads
 * outside the frame. Values are kept as the bytes they are, so that what one process cached another can serve verbatim.
 */

const LARGEST_BLOB = 16 * 1024 * 1024;
const GZIP_MAGIC = 0x1f8b;

/** Walks through a frame and refuses to step over its end. */
class FrameReader {
  readonly #frame: Buffer;
  readonly #shape: string;
  #at = 0;

  constructor(frame: Buffer, shape: string) {
    this.#frame = frame;
    this.#shape = shape;
  }

  unsigned8(what: string): number {
    return this.bytes(1, what).readUInt8(0);
  }

  unsigned32(what: string): number {
    return this.bytes(4, what).readUInt32BE(0);
  }

  unsigned64(what: string): number {
    const value = this.bytes(8, what).readBigUInt64BE(0);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw undecodable(this.#shape, `${what} is ${value}`);
    return Number(value);
  }

  bytes(length: number, what: string): Buffer {
    const left = this.#frame.length - this.#at;
    if (length > left) throw undecodable(this.#shape, `${what} needs ${length} bytes, ${left} are left`);
    this.#at += length;
    return this.#frame.subarray(this.#at - length, this.#at);
  }

  text(length: number, what: string): string {
    return decodeText(this.bytes(length, what), this.#shape, what);
  }

  rest(): Buffer {
    return this.bytes(this.#frame.length - this.#at, "the rest");
  }
}

function decodeText(bytes: Buffer, shape: string, what: string): string {
  assertText(bytes, shape, what);
  return bytes.toString("utf8");
}

function assertText(bytes: Buffer, shape: string, what: string): void {
  if (!isUtf8(bytes)) throw undecodable(shape, `${what} is not UTF-8`);
}

function unsigned32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function unsigned64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export interface HeaderFrame<Header> {
  readonly header: Header;
  readonly value: Buffer;
}

/** F1: a JSON header with its length before it, then the value to the end. */
export function headerFrame<Header>(schema: z.ZodType<Header>): Codec<HeaderFrame<Header>> {
  const shape = "header frame: u32 n, n bytes JSON header, value";
  const headers = json(schema, { shape: "header frame" });
  return {
    shape,
    encode({ header, value }) {
      const written = Buffer.from(headers.encode(header) as string, "utf8");
      return Buffer.concat([unsigned32(written.length), written, value]);
    },
    decode(raw) {
      const reader = new FrameReader(raw, "header frame");
      const written = reader.bytes(reader.unsigned32("the header's length"), "the header");
      assertText(written, "header frame", "the header");
      return { header: headers.decode(written), value: reader.rest() };
    },
  };
}

export type TaggedFrame =
  | { readonly kind: "purge"; readonly uid: string }
  | { readonly kind: "fill"; readonly uid: string; readonly value: Buffer };

/** F2: a purge or a fill of one uid. Bytes after the uid of a purge mean nothing. */
export const taggedFrame: Codec<TaggedFrame> = {
  shape: "tagged frame: u8 kind (0 purge, 1 fill), u32 n, n bytes uid, value",
  encode(frame) {
    const uid = Buffer.from(frame.uid, "utf8");
    const start = [Buffer.from([frame.kind === "fill" ? 1 : 0]), unsigned32(uid.length), uid];
    return Buffer.concat(frame.kind === "fill" ? [...start, frame.value] : start);
  },
  decode(raw) {
    const reader = new FrameReader(raw, "tagged frame");
    const kind = reader.unsigned8("the kind");
    if (kind > 1) throw undecodable("tagged frame", `the kind is ${kind}`);
    const uid = reader.text(reader.unsigned32("the uid's length"), "the uid");
    return kind === 0 ? { kind: "purge", uid } : { kind: "fill", uid, value: reader.rest() };
  },
};

export interface ChartFrame {
  /** The first unix date of the chart. */
  readonly startDate: number;
  /** The unix date after its last. */
  readonly endDate: number;
  /** Gzip of the chart's JSON, kept compressed because it is stored and served as it is. */
  readonly blob: Buffer;
}

/** F3: a compressed chart over a span of days. Bytes after the blob mean nothing. */
export const chartFrame: Codec<ChartFrame> = {
  shape: "chart frame: u32 start_date, u32 end_date, u64 n, n bytes gzip JSON",
  encode: ({ startDate, endDate, blob }) =>
    Buffer.concat([unsigned32(startDate), unsigned32(endDate), unsigned64(blob.length), blob]),
  decode(raw) {
    const reader = new FrameReader(raw, "chart frame");
    const startDate = reader.unsigned32("the start date");
    const endDate = reader.unsigned32("the end date");
    if (startDate >= endDate) throw undecodable("chart frame", `it spans ${startDate} to ${endDate}`);
    const length = reader.unsigned64("the blob's length");
    if (length > LARGEST_BLOB) throw undecodable("chart frame", `a blob of ${length} bytes`);
    const blob = reader.bytes(length, "the blob");
    if (length < 2 || blob.readUInt16BE(0) !== GZIP_MAGIC) throw undecodable("chart frame", "the blob is not gzip");
    return { startDate, endDate, blob };
  },
};

export interface BlobFrame {
  readonly uid: string;
  readonly value: Buffer;
}

/** F4: a uid and its value, each with its length before it. Bytes after the value mean nothing. */
export const blobFrame: Codec<BlobFrame> = {
  shape: "blob frame: u32 n, n bytes uid, u64 m, m bytes value",
  encode({ uid, value }) {
    const name = Buffer.from(uid, "utf8");
    return Buffer.concat([unsigned32(name.length), name, unsigned64(value.length), value]);
  },
  decode(raw) {
    const reader = new FrameReader(raw, "blob frame");
    const uid = reader.text(reader.unsigned32("the uid's length"), "the uid");
    return { uid, value: reader.bytes(reader.unsigned64("the value's length"), "the value") };
  },
};

export interface DatedFrame<Value> {
  readonly unixDate: number;
  readonly value: Value;
}

/** F5: a unix date, then JSON to the end. */
export function datedFrame<Value>(schema: z.ZodType<Value>): Codec<DatedFrame<Value>> {
  const values = json(schema, { shape: "dated frame" });
  return {
    shape: "dated frame: u32 unix_date, UTF-8 JSON",
    encode: ({ unixDate, value }) =>
      Buffer.concat([unsigned32(unixDate), Buffer.from(values.encode(value) as string, "utf8")]),
    decode(raw) {
      const reader = new FrameReader(raw, "dated frame");
      const unixDate = reader.unsigned32("the unix date");
      const written = reader.rest();
      assertText(written, "dated frame", "the value");
      return { unixDate, value: values.decode(written) };
    },
  };
}

/** F6: the whole message is one JSON value. */
export function jsonFrame<Value>(schema: z.ZodType<Value>): Codec<Value> {
  const values = json(schema, { shape: "JSON frame" });
  return {
    shape: "JSON frame",
    encode: values.encode,
    decode(raw) {
      assertText(raw, "JSON frame", "the message");
      return values.decode(raw);
    },
  };
}

/** F7: the whole message is one uid. */
export const uidFrame: Codec<string> = {
  shape: "uid frame: the uid and nothing else",
  encode: (uid) => uid,
  decode(raw) {
    if (raw.length === 0) throw undecodable("uid frame", "it is empty");
    return decodeText(raw, "uid frame", "the uid");
  },
};
