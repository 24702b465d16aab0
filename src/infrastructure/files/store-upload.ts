import { extname } from "node:path";
import { Readable } from "node:stream";
import type { Kysely } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { readAll } from "../../providers/object-store.ts";
import { errors } from "./errors.ts";
import { protectionOf, takeOff } from "./purgatory.ts";
import { type FileTransaction, putFile, type StoredFile } from "./put.ts";
import type { FileTables } from "./tables.ts";

const PARALLEL_DOWNLOADS = 10;
const KEYS_AT_ONCE = 100;

/**
 * Puts the parts of a completed upload together to one object and answers its file's uid, or nothing when the upload is
 * gone. The upload's row remembers the file, so a second run finds the first one's work instead of repeating it.
 */
export async function storeUpload(
  ctx: JobContext,
  plan: { uploadUid: string; name: string; contentType: string },
): Promise<string | undefined> {
  const upload = await ctx.sql
    .tables<FileTables>()
    .selectFrom("s3_file_uploads as upload")
    .leftJoin("s3_files as file", "file.id", "upload.stored_file_id")
    .select(["upload.id", "upload.outcome", "file.uid as storedUid", "file.bucket", "file.key"])
    .where("upload.uid", "=", plan.uploadUid)
    .executeTakeFirst();
  if (!upload) return undefined;
  if (upload.storedUid !== null) {
    // The run before may have died just before its last step. The upload's row goes soon, and with it the last thing
    // that would keep the sweep from this file.
    await takeOff(ctx, [protectionOf({ bucket: upload.bucket!, key: upload.key! })]);
    return upload.storedUid;
  }
  if (upload.outcome !== "completed") throw errors.upload_aborted_or_completed();
  if (!(await hasAllParts(ctx.sql.tables<FileTables>(), upload.id))) throw errors.upload_aborted_or_completed();
  const file = await putFile(ctx, Readable.from(partsInOrder(ctx, upload.id), { objectMode: false }), {
    purpose: "processing_output",
    contentType: plan.contentType,
    keyPrefix: `s3_files/stored/${plan.uploadUid}`,
    extension: extensionOf(plan.name),
    references: {
      add: (tx, stored) => remember(tx, upload.id, stored),
      remove: async (tx, stored) => {
        await tx
          .updateTable("s3_file_uploads")
          .set({ stored_file_id: null })
          .where("stored_file_id", "=", stored.id)
          .execute();
      },
    },
  });
  return file.uid;
}

/** False when parts are missing, because the upload is being deleted. */
async function hasAllParts(db: Kysely<FileTables>, uploadId: number): Promise<boolean> {
  const { last, stored } = await db
    .selectFrom("s3_file_upload_parts")
    .select(({ fn }) => [fn.max<number | null>("part_number").as("last"), fn.count<number>("s3_file_id").as("stored")])
    .where("s3_file_upload_id", "=", uploadId)
    .executeTakeFirstOrThrow();
  return last !== null && stored === last;
}

/**
 * Two runs at once both store; the second to come here gives up, and its object is removed. So does one whose parts were
 * deleted while it read them.
 */
async function remember(tx: FileTransaction, uploadId: number, stored: StoredFile): Promise<void> {
  if (!(await hasAllParts(tx, uploadId))) throw errors.upload_aborted_or_completed();
  const { numUpdatedRows } = await tx
    .updateTable("s3_file_uploads")
    .set({ stored_file_id: stored.id })
    .where("id", "=", uploadId)
    .where("stored_file_id", "is", null)
    .executeTakeFirst();
  if (Number(numUpdatedRows) === 0) throw errors.upload_aborted_or_completed();
}

/** The bytes of all parts, with ten parts on their way at any time. */
async function* partsInOrder(ctx: JobContext, uploadId: number): AsyncGenerator<Buffer> {
  const coming: Promise<Buffer>[] = [];
  for await (const key of partKeys(ctx, uploadId)) {
    if (ctx.shuttingDown()) throw ctx.bounce();
    const part = download(ctx, key);
    // It may fail while an earlier one is awaited; whoever awaits it hears of it.
    part.catch(() => {});
    coming.push(part);
    if (coming.length >= PARALLEL_DOWNLOADS) yield await coming.shift()!;
  }
  while (coming.length > 0) yield await coming.shift()!;
}

async function download(ctx: JobContext, key: string): Promise<Buffer> {
  return readAll(await ctx.providers.objectStore.get(key));
}

async function* partKeys(ctx: JobContext, uploadId: number): AsyncGenerator<string> {
  for (let after = 0; ; ) {
    const page = await ctx.sql
      .tables<FileTables>()
      .selectFrom("s3_file_upload_parts as part")
      .innerJoin("s3_files as file", "file.id", "part.s3_file_id")
      .select(["part.part_number", "file.key"])
      .where("part.s3_file_upload_id", "=", uploadId)
      .where("part.part_number", ">", after)
      .orderBy("part.part_number")
      .limit(KEYS_AT_ONCE)
      .execute();
    for (const { key } of page) yield key;
    if (page.length < KEYS_AT_ONCE) return;
    after = page.at(-1)!.part_number;
  }
}

/** The extension of the file's name if it is a plain one; keys take few characters. */
function extensionOf(name: string): string {
  const extension = extname(name).toLowerCase();
  return /^\.[a-z0-9]{1,10}$/.test(extension) ? extension : "";
}
