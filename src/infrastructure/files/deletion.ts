import type { Context, JobContext } from "../../jobs/context.ts";
import { errors } from "./errors.ts";
import { deleteAt, deletionOf, type FileLocation, takeOff } from "./purgatory.ts";
import type { FileTransaction } from "./put.ts";
import { isStillReferenced } from "./rows.ts";
import type { FileTables } from "./tables.ts";

const PARTS = 10;
/** Seconds that a deletion has to finish by itself before the sweep does the rest. */
const SWEPT_AFTER = 600;

/**
 * Deletes files whose rows go in one transaction with those that refer to them.
 *
 * Before anything else the objects are put on the purgatory list as wanted deletions: whatever this process does not get
 * to, the sweep finishes after ten minutes. A refusal by a foreign key takes them off again.
 */
async function deleteFiles(
  ctx: Context,
  files: readonly FileLocation[],
  hint: string,
  deleteRows: (tx: FileTransaction) => Promise<void>,
): Promise<void> {
  const deletions = files.map((file) => deletionOf(file, hint));
  await deleteAt(ctx, deletions, ctx.clock.now() + SWEPT_AFTER);
  try {
    await ctx.sql.tables<FileTables>().transaction().execute(deleteRows);
  } catch (error) {
    if (!isStillReferenced(error)) throw error;
    await takeOff(ctx, deletions);
    throw errors.file_in_use({ cause: error, detail: { keys: files.map(({ key }) => key) } });
  }
  await Promise.all(files.map(({ key }) => ctx.providers.objectStore.delete(key)));
  await takeOff(ctx, deletions);
}

/** Deletes the parts of an upload and then the upload. What is gone already is done. */
export async function deleteUpload(ctx: JobContext, uid: string): Promise<void> {
  const tables = ctx.sql.tables<FileTables>();
  for (;;) {
    if (ctx.shuttingDown()) throw ctx.bounce();
    const parts = await tables
      .selectFrom("s3_file_uploads as upload")
      .innerJoin("s3_file_upload_parts as part", "part.s3_file_upload_id", "upload.id")
      .innerJoin("s3_files as file", "file.id", "part.s3_file_id")
      .select(["part.id as partId", "file.id as fileId", "file.bucket", "file.key"])
      .where("upload.uid", "=", uid)
      .orderBy("part.id")
      .limit(PARTS)
      .execute();
    if (parts.length === 0) break;
    await deleteFiles(ctx, parts, "delete_file_upload", async (tx) => {
      const partIds = parts.map(({ partId }) => partId);
      const fileIds = parts.map(({ fileId }) => fileId);
      await tx.deleteFrom("s3_file_upload_parts").where("id", "in", partIds).execute();
      await tx.deleteFrom("s3_files").where("id", "in", fileIds).execute();
    });
  }
  await tables.deleteFrom("s3_file_uploads").where("uid", "=", uid).execute();
}

/** Deletes one file by its uid, or one object by its key with the row that it may have. */
export async function deleteS3File(ctx: Context, target: { uid?: string; key?: string }): Promise<void> {
  const { bucket } = ctx.providers.objectStore;
  if (target.uid === undefined && target.key === undefined)
    return ctx.alerts.warning("files:nothing_to_delete", "a file was to be deleted, but neither uid nor key was given");
  let query = ctx.sql.tables<FileTables>().selectFrom("s3_files").select(["id", "bucket", "key"]);
  if (target.uid !== undefined) query = query.where("uid", "=", target.uid);
  if (target.key !== undefined) query = query.where("bucket", "=", bucket).where("key", "=", target.key);
  const row = await query.executeTakeFirst();
  const location =
    row ?? (target.uid === undefined && target.key !== undefined ? { bucket, key: target.key } : undefined);
  if (!location) return;
  await deleteFiles(ctx, [location], "delete_s3_file", async (tx) => {
    await tx.deleteFrom("s3_files").where("bucket", "=", location.bucket).where("key", "=", location.key).execute();
  });
}
