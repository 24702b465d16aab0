import type { Readable } from "node:stream";

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
