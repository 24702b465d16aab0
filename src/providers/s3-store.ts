import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import type { Clock } from "../kernel/clock.ts";
import { CarillonError } from "../kernel/errors.ts";
import { type ObjectStore, objectStoreErrors, requireObjectKey } from "./object-store.ts";

/** Seconds before each further attempt after a fault that may pass. */
const RETRY_WAITS = [1, 2, 4, 8];
const CONNECTION_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 60_000;

export interface S3StoreOptions {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  /** Absent: wherever the platform keeps credentials, such as an instance role. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** `http://host/bucket/key` instead of `http://bucket.host/key`, as most servers other than Amazon's want it. */
  readonly pathStyle: boolean;
  readonly clock: Clock;
}

type Fault = "missing" | "transient" | "permanent";

/** Any server that speaks the S3 protocol. */
export class S3Store implements ObjectStore {
  readonly bucket: string;
  readonly #client: S3Client;
  readonly #clock: Clock;

  constructor(options: S3StoreOptions) {
    this.bucket = options.bucket;
    this.#clock = options.clock;
    this.#client = new S3Client({
      endpoint: options.endpoint,
      region: options.region,
      credentials: options.credentials,
      forcePathStyle: options.pathStyle,
      // The waits between attempts follow the injected clock, so the client itself tries once.
      maxAttempts: 1,
      // Newer checksum trailers are unknown to many servers; the length and the signature already cover the content.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      // Faults are told by the errors raised here; without this the client also writes them to the console.
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
    });
  }

  async put(key: string, content: Buffer | Readable, options: { contentType: string }): Promise<void> {
    requireObjectKey(key);
    const target = { Bucket: this.bucket, Key: key, ContentType: options.contentType };
    if (Buffer.isBuffer(content)) {
      await this.#attempt(() =>
        this.#client.send(new PutObjectCommand({ ...target, Body: content, ContentLength: content.length })),
      );
      return;
    }
    // A stream can be read once but may have to be sent five times, and its length must be known before it is sent.
    const folder = await mkdtemp(join(tmpdir(), "carillon-put-"));
    const spooled = join(folder, "content");
    try {
      await pipeline(content, createWriteStream(spooled));
      const { size } = await stat(spooled);
      await this.#attempt(() =>
        this.#client.send(new PutObjectCommand({ ...target, Body: createReadStream(spooled), ContentLength: size })),
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Readable> {
    requireObjectKey(key);
    const Range = range && `bytes=${range.start}-${range.end}`;
    const answer = await this.#attempt(() =>
      this.#client.send(new GetObjectCommand({ Bucket: this.bucket, Key: key, Range })),
    );
    return answer.Body as Readable;
  }

  async head(key: string): Promise<{ size: number; contentType: string } | undefined> {
    requireObjectKey(key);
    try {
      const answer = await this.#attempt(() =>
        this.#client.send(new HeadObjectCommand({ Bucket: this.bucket, Key: key })),
      );
      return { size: answer.ContentLength ?? 0, contentType: answer.ContentType ?? "application/octet-stream" };
    } catch (error) {
      if (objectStoreErrors.object_not_found.matches(error)) return undefined;
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    requireObjectKey(key);
    try {
      await this.#attempt(() => this.#client.send(new DeleteObjectCommand({ Bucket: this.bucket, Key: key })));
    } catch (error) {
      if (!objectStoreErrors.object_not_found.matches(error)) throw error;
    }
  }

  async *list(prefix: string): AsyncIterable<{ key: string; size: number; modifiedAt: number }> {
    let after: string | undefined;
    do {
      const page = await this.#attempt(() =>
        this.#client.send(new ListObjectsV2Command({ Bucket: this.bucket, Prefix: prefix, ContinuationToken: after })),
      );
      for (const entry of page.Contents ?? [])
        yield {
          key: entry.Key ?? "",
          size: entry.Size ?? 0,
          modifiedAt: (entry.LastModified?.getTime() ?? 0) / 1000,
        };
      after = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (after !== undefined);
  }

  close(): void {
    this.#client.destroy();
  }

  async #attempt<T>(request: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await request();
      } catch (error) {
        if (error instanceof CarillonError) throw error;
        const fault = faultOf(error);
        const wait = RETRY_WAITS[attempt];
        if (fault === "missing") throw objectStoreErrors.object_not_found({ cause: error });
        if (fault === "permanent") throw objectStoreErrors.file_store_refused({ cause: error });
        if (wait === undefined) throw objectStoreErrors.file_store_unavailable({ cause: error, retryAfter: 5 });
        await this.#clock.sleep(wait);
      }
    }
  }
}

/**
 * Missing credentials count as transient: on most platforms they come from a service beside the process that may be
 * late. A bucket that does not exist, however, will not appear by waiting.
 */
function faultOf(error: unknown): Fault {
  if (!(error instanceof S3ServiceException)) return "transient";
  if (error.name === "NoSuchBucket") return "permanent";
  const status = error.$metadata.httpStatusCode;
  if (error.name === "NoSuchKey" || error.name === "NotFound" || status === 404) return "missing";
  if (error.name === "SlowDown" || error.name === "RequestTimeout") return "transient";
  if (status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429) return "permanent";
  return "transient";
}
