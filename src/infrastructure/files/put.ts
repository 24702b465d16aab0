import { Readable } from "node:stream";
import type { Transaction } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { newUid, randomToken } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { requireObjectKey } from "../../providers/object-store.ts";
import { errors } from "./errors.ts";
import {
  deleteAt,
  deletionOf,
  type FileLocation,
  protectionOf,
  protectUntil,
  renewUntil,
  takeOff,
} from "./purgatory.ts";
import type { FileTables } from "./tables.ts";

/**
 * The life of a stored file:
 *
 *   protected -> uploaded -> recorded -> unprotected
 *
 * The row in `s3_files` is authoritative: it says that all of the object is there. Until it is, a member of
 * `files:purgatory` says when to give up. What a death leaves, and what the sweep makes of it once the protection is over:
 * after `protected` the member alone, deleted; after `uploaded` an object without a row, deleted; after `recorded` all
 * three, kept if something refers to the row and deleted if nothing does.
 *
 * An upload that outlives its protection meets the sweep. It is renewed at 80 % of its time, and looked at again before
 * the row is written, so this takes a process that stood still. Then the last arrow finds nothing to take off, and the
 * row is removed again.
 */

/** What the file is for: how long its upload is protected, in seconds. */
export const PROTECT_FOR = {
  upload_part: 600,
  image_export: 600,
  original_image: 3600,
  processing_output: 3000,
} as const;
export type FilePurpose = keyof typeof PROTECT_FOR;

export interface StoredFile extends FileLocation {
  readonly id: number;
  readonly uid: string;
  readonly fileSize: number;
  readonly contentType: string;
  readonly createdAt: number;
}

export type FileTransaction = Transaction<FileTables>;

export interface PutPlan {
  readonly purpose: FilePurpose;
  /** Seconds; by default what the purpose says. */
  readonly protectFor?: number;
  readonly contentType: string;
  /** The key is this, a slash, a random part that is never used twice, and the extension. */
  readonly keyPrefix: string;
  /** With its dot. */
  readonly extension?: string;
  /** Rows that refer to the file, written with it, and removed with it when the sweep was faster. */
  readonly references?: {
    add(tx: FileTransaction, file: StoredFile): Promise<void>;
    remove(tx: FileTransaction, file: StoredFile): Promise<void>;
  };
}

const RENEW_AT = 0.8;
const RENEW_AGAIN_AT = 0.05;

/** Stores one object and its row. */
export async function putFile(ctx: Context, content: Buffer | Readable, plan: PutPlan): Promise<StoredFile> {
  const { objectStore } = ctx.providers;
  const key = requireObjectKey(`${plan.keyPrefix}/${randomToken()}${plan.extension ?? ""}`);
  const location = { bucket: objectStore.bucket, key };
  const protection = await Protection.begin(ctx, location, plan.protectFor ?? PROTECT_FOR[plan.purpose]);
  try {
    const fileSize = await upload(ctx, protection, key, content, plan.contentType);
    await protection.secure();
    const file = await record(ctx, protection, { ...location, fileSize, contentType: plan.contentType }, plan);
    if (await protection.end(file)) return file;
    await undo(ctx, protection, file, plan);
  } catch (error) {
    if (!protection.lost.signal.aborted) throw error;
    await protection.abandon();
  } finally {
    protection.stopRenewing();
  }
  throw errors.swept_during_upload({ detail: { key } });
}

/** The upload's claim on its key, renewed for as long as the upload runs. */
class Protection {
  readonly member: string;
  /** Aborted when the sweep turns out to have taken the object. */
  readonly lost = new AbortController();
  readonly location: FileLocation;
  readonly #ctx: Context;
  readonly #seconds: number;
  readonly #finished = new AbortController();
  #until = 0;

  private constructor(ctx: Context, location: FileLocation, seconds: number) {
    this.#ctx = ctx;
    this.location = location;
    this.member = protectionOf(location);
    this.#seconds = seconds;
  }

  static async begin(ctx: Context, location: FileLocation, seconds: number): Promise<Protection> {
    const protection = new Protection(ctx, location, seconds);
    const until = ctx.clock.now() + seconds;
    const outcome = await protectUntil(ctx, protection.member, until);
    if (!outcome.ok) throw errors.swept_during_upload({ detail: { key: location.key } });
    protection.#until = until;
    void protection.#keepRenewing();
    return protection;
  }

  /** Makes sure that enough time is left for writing the rows, so that the sweep cannot come in between. */
  async secure(): Promise<void> {
    if (!this.lost.signal.aborted && this.#until - this.#ctx.clock.now() >= this.#seconds / 2) return;
    if (await this.#renew()) return;
    this.lost.abort();
    throw errors.swept_during_upload({ detail: { key: this.location.key } });
  }

  /** True when the file is safe; false when the sweep took it first. */
  async end(file: StoredFile): Promise<boolean> {
    this.stopRenewing();
    try {
      return (await takeOff(this.#ctx, [this.member])) === 1;
    } catch (error) {
      if (!kernelErrors.outcome_unknown.matches(error)) throw error;
      // Taking it off twice cannot be told from coming too late; whether the row outlived both can.
      await takeOff(this.#ctx, [this.member]);
      return rowExists(this.#ctx, file.id);
    }
  }

  /** The sweep may have deleted before our last bytes arrived: it is asked once more, as a deletion that is wanted. */
  async abandon(): Promise<void> {
    await deleteAt(this.#ctx, [deletionOf(this.location, "swept_during_upload")], this.#ctx.clock.now());
  }

  stopRenewing(): void {
    this.#finished.abort();
  }

  async #keepRenewing(): Promise<void> {
    let wait = this.#seconds * RENEW_AT;
    while (await this.#ctx.clock.sleep(wait, this.#finished.signal)) {
      try {
        if (!(await this.#renew())) return this.lost.abort();
        wait = this.#seconds * RENEW_AT;
      } catch {
        // Redis is away. There is a fifth of the time left to reach it.
        wait = this.#seconds * RENEW_AGAIN_AT;
      }
    }
  }

  async #renew(): Promise<boolean> {
    const until = this.#ctx.clock.now() + this.#seconds;
    const outcome = await renewUntil(this.#ctx, this.member, until);
    if (outcome.ok) this.#until = until;
    return outcome.ok;
  }
}

/** Sends the bytes and answers how many there were. */
async function upload(
  ctx: Context,
  protection: Protection,
  key: string,
  content: Buffer | Readable,
  contentType: string,
): Promise<number> {
  const { objectStore } = ctx.providers;
  let size = 0;
  if (Buffer.isBuffer(content)) {
    size = content.length;
    await objectStore.put(key, content, { contentType, size });
  } else {
    // A source that breaks before the store begins to read must wait for its reader instead of ending the process.
    content.on("error", () => {});
    const counted = Readable.from(
      (async function* () {
        for await (const chunk of content as AsyncIterable<Buffer>) {
          size += chunk.length;
          yield chunk;
        }
      })(),
      { objectMode: false },
    );
    const stop = () => content.destroy(errors.swept_during_upload({ detail: { key } }));
    protection.lost.signal.addEventListener("abort", stop, { once: true });
    try {
      await objectStore.put(key, counted, { contentType });
    } finally {
      content.destroy();
    }
  }
  // A store that does not show the object yet cannot be asked; one that shows another size has cut it.
  const stored = await objectStore.head(key);
  if (stored && stored.size !== size)
    throw errors.file_store_unavailable({
      message: `the store kept ${stored.size} of ${size} bytes`,
      retryAfter: 5,
    });
  return size;
}

async function record(
  ctx: Context,
  protection: Protection,
  facts: FileLocation & { fileSize: number; contentType: string },
  plan: PutPlan,
): Promise<StoredFile> {
  const createdAt = ctx.clock.now();
  let committing = false;
  try {
    return await ctx.sql
      .tables<FileTables>()
      .transaction()
      .execute(async (tx) => {
        const { id, uid } = await tx
          .insertInto("s3_files")
          .values({
            uid: newUid("s3f"),
            bucket: facts.bucket,
            key: facts.key,
            file_size: facts.fileSize,
            content_type: facts.contentType,
            created_at: timestamp(createdAt),
          })
          .returning(["id", "uid"])
          .executeTakeFirstOrThrow();
        const file = { ...facts, id, uid, createdAt };
        await plan.references?.add(tx, file);
        committing = true;
        return file;
      });
  } catch (error) {
    // A commit without an answer may have happened, so only the sweep may decide. Before it, nothing was written.
    if (!committing) await discard(ctx, protection);
    throw error;
  }
}

/** Removes an object that got no row. Whatever fails here is left to the sweep. */
async function discard(ctx: Context, protection: Protection): Promise<void> {
  try {
    await ctx.providers.objectStore.delete(protection.location.key);
    await takeOff(ctx, [protection.member]);
  } catch (error) {
    ctx.log.info({ err: error, key: protection.location.key }, "an object without a row is left to the sweep");
  }
}

async function undo(ctx: Context, protection: Protection, file: StoredFile, plan: PutPlan): Promise<void> {
  await ctx.sql
    .tables<FileTables>()
    .transaction()
    .execute(async (tx) => {
      await plan.references?.remove(tx, file);
      await tx.deleteFrom("s3_files").where("id", "=", file.id).execute();
    });
  await protection.abandon();
}

async function rowExists(ctx: Context, id: number): Promise<boolean> {
  const row = await ctx.sql
    .tables<FileTables>()
    .selectFrom("s3_files")
    .select("id")
    .where("id", "=", id)
    .executeTakeFirst();
  return row !== undefined;
}
