import type { Readable } from "node:stream";
import { defineErrors } from "../kernel/errors.ts";

/** Where files live. Keys use only `[A-Za-z0-9._/-]`, so that a folder can serve as a store too. */
export interface ObjectStore {
  readonly bucket: string;
  put(key: string, content: Buffer | Readable, options: { contentType: string; size?: number }): Promise<void>;
  /** The content, or the bytes from `start` to `end` inclusive. Raises `object_not_found`. */
  get(key: string, range?: { start: number; end: number }): Promise<Readable>;
  head(key: string): Promise<{ size: number; contentType: string } | undefined>;
  /** Deleting what is not there is done too. */
  delete(key: string): Promise<void>;
  /** Keys below a prefix, in order. */
  list(prefix: string): AsyncIterable<{ key: string; size: number; modifiedAt: number }>;
}

/**
 * What a store may answer besides success. Callers decide on two questions only: is the object missing, and is it worth
 * trying again later.
 */
export const objectStoreErrors = defineErrors({
  object_not_found: { status: 404, doc: "The object store has no object under this key." },
  file_store_unavailable: {
    status: 503,
    doc: "The object store cannot be used right now.",
    hint: "Try again in a few seconds; nothing that was stored before is lost.",
  },
  file_store_refused: {
    status: 502,
    doc: "The object store refuses the request, and would refuse it again.",
    hint: "Check the bucket, its permissions and the s3.* settings.",
  },
  bad_object_key: {
    status: 500,
    doc: "An object key may hold only letters, digits, `.`, `_`, `-` and `/`, without empty or dot-only segments, and may not end in a dot.",
  },
});

const OBJECT_KEY = /^[A-Za-z0-9._/-]{1,1024}$/;
/** Most file systems refuse a longer name, and the folder store adds a few characters of its own. */
const LONGEST_SEGMENT = 240;

/** True for keys that every store can hold. A segment of dots would climb out of a folder store. */
export function isObjectKey(key: string): boolean {
  return (
    OBJECT_KEY.test(key) &&
    !key.endsWith(".") &&
    key.split("/").every((segment) => /[^.]/.test(segment) && segment.length <= LONGEST_SEGMENT)
  );
}

export function requireObjectKey(key: string): string {
  if (!isObjectKey(key)) throw objectStoreErrors.bad_object_key({ detail: { key: key.slice(0, 200) } });
  return key;
}

/** The bytes of an object, for objects that are known to be small. */
export async function readAll(content: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
