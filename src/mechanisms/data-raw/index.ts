import { isAscii } from "node:buffer";
import { constants, crc32, gunzipSync, gzipSync } from "node:zlib";
import { dataRawErrors } from "./errors.ts";

export { dataRawErrors } from "./errors.ts";

/**
 * The argument that carries a message's story to its callback: JSON, gzipped, as URL-safe base64 with padding. A job is
 * JSON itself, and JSON inside JSON doubles its quotes at every level; base64 does not.
 *
 * Most stories are a few hundred bytes, which compression makes hardly smaller but much slower to write. So short ones
 * are wrapped in a stored block: valid gzip that every reader understands, made of a header, the bytes and a checksum.
 */
export interface DataRawOptions {
  /** The largest JSON, in bytes. Whoever writes and whoever reads must agree on it. */
  readonly maxBytes?: number;
}

export const DATA_RAW_LIMIT = 65_536;

/** From this size on compressing pays. */
const COMPRESSED_FROM = 2048;
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** Header, the block's marker and its length twice. */
const PROLOGUE = HEADER.length + 5;
const EPILOGUE = 8;
const FINAL_STORED_BLOCK = 1;
const TEXT = /^[A-Za-z0-9_-]+={0,2}$/;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeDataRaw(value: unknown, { maxBytes = DATA_RAW_LIMIT }: DataRawOptions = {}): string {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError("data_raw carries JSON, and this value has none");
  const size = Buffer.byteLength(json);
  if (size > maxBytes)
    throw dataRawErrors.bad_data_raw({ message: `data_raw would be ${size} bytes; at most ${maxBytes} are read.` });
  const packed =
    size < COMPRESSED_FROM ? store(json, size) : gzipSync(json, { level: constants.Z_DEFAULT_COMPRESSION });
  const text = packed.toString("base64url");
  return text + "=".repeat((4 - (text.length & 3)) & 3);
}

export function decodeDataRaw(text: string, { maxBytes = DATA_RAW_LIMIT }: DataRawOptions = {}): unknown {
  if (!TEXT.test(text)) throw dataRawErrors.bad_data_raw({ message: "data_raw is not URL-safe base64." });
  const packed = Buffer.from(text, "base64url");
  const json = stored(packed) ?? inflate(packed, maxBytes);
  if (json.length > maxBytes) throw tooLarge(maxBytes);
  try {
    return JSON.parse(isAscii(json) ? json.toString("latin1") : utf8.decode(json));
  } catch (cause) {
    throw dataRawErrors.bad_data_raw({ message: "data_raw holds no JSON.", cause });
  }
}

function store(json: string, size: number): Buffer {
  const packed = Buffer.allocUnsafe(PROLOGUE + size + EPILOGUE);
  HEADER.copy(packed);
  packed[HEADER.length] = FINAL_STORED_BLOCK;
  packed.writeUInt16LE(size, HEADER.length + 1);
  packed.writeUInt16LE(~size & 0xffff, HEADER.length + 3);
  packed.write(json, PROLOGUE, "utf8");
  packed.writeUInt32LE(crc32(packed.subarray(PROLOGUE, PROLOGUE + size)), PROLOGUE + size);
  packed.writeUInt32LE(size, PROLOGUE + size + 4);
  return packed;
}

/** The bytes of what `store` wrote; nothing for any other gzip, which goes the long way. */
function stored(packed: Buffer): Buffer | undefined {
  const size = packed.length - PROLOGUE - EPILOGUE;
  if (size < 0 || size > 0xffff || packed[HEADER.length] !== FINAL_STORED_BLOCK) return undefined;
  if (HEADER.compare(packed, 0, HEADER.length) !== 0) return undefined;
  if (packed.readUInt16LE(HEADER.length + 1) !== size) return undefined;
  if (packed.readUInt16LE(HEADER.length + 3) !== (~size & 0xffff)) return undefined;
  const bytes = packed.subarray(PROLOGUE, PROLOGUE + size);
  const intact =
    packed.readUInt32LE(PROLOGUE + size) === crc32(bytes) && packed.readUInt32LE(PROLOGUE + size + 4) === size;
  return intact ? bytes : undefined;
}

/** Stops at the limit, so that a small text cannot become a large memory. */
function inflate(packed: Buffer, maxBytes: number): Buffer {
  try {
    return gunzipSync(packed, { maxOutputLength: maxBytes });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(maxBytes);
    throw dataRawErrors.bad_data_raw({ message: "data_raw is not gzip, or damaged.", cause });
  }
}

const tooLarge = (maxBytes: number) =>
  dataRawErrors.bad_data_raw({ message: `data_raw is larger than ${maxBytes} bytes once it is unpacked.` });
