import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { errors } from "./errors.ts";
import { type FileTransaction, putFile } from "./put.ts";
import type { FileTables } from "./tables.ts";
import { announceOrLeave, ENDED, type EndedUpload } from "./uploads.ts";

export interface PartPlan {
  readonly uploadUid: string;
  readonly partNumber: number;
}

interface ExpectedPart {
  readonly id: number;
  readonly uploadId: number;
  readonly size: number;
}

/** What the upload expects under this number, or a refusal: asked before the body is read. */
export async function expectPart(ctx: Context, plan: PartPlan): Promise<ExpectedPart> {
  const row = await ctx.sql
    .tables<FileTables>()
    .selectFrom("s3_file_uploads as upload")
    .leftJoin("s3_file_upload_parts as part", (join) =>
      join.onRef("part.s3_file_upload_id", "=", "upload.id").on("part.part_number", "=", plan.partNumber),
    )
    .select([
      "upload.id as uploadId",
      "upload.completed_at",
      "upload.expires_at",
      "part.id",
      "part.s3_file_id",
      "part.start_byte",
      "part.end_byte",
    ])
    .where("upload.uid", "=", plan.uploadUid)
    .executeTakeFirst();
  if (!row || row.completed_at !== null || row.expires_at <= ctx.clock.now())
    throw errors.upload_aborted_or_completed();
  if (row.id === null || row.start_byte === null || row.end_byte === null) throw errors.part_does_not_exist();
  if (row.s3_file_id !== null) throw errors.part_already_uploaded();
  return { id: row.id, uploadId: row.uploadId, size: row.end_byte - row.start_byte };
}

/** Stores one part. `done` is true for the part that completes the upload. */
export async function uploadPart(
  ctx: Context,
  plan: PartPlan,
  content: Buffer,
  expected?: ExpectedPart,
): Promise<{ done: boolean }> {
  const part = expected ?? (await expectPart(ctx, plan));
  if (content.length !== part.size)
    throw errors.part_does_not_match({ detail: { expected_size: part.size, received_size: content.length } });
  let completed: EndedUpload | undefined;
  await putFile(ctx, content, {
    purpose: "upload_part",
    contentType: "application/octet-stream",
    keyPrefix: `s3_files/uploads/${plan.uploadUid}/${plan.partNumber}`,
    references: {
      add: async (tx, file) => {
        completed = await attach(tx, part, file.id, file.createdAt);
      },
      remove: (tx, file) => detach(tx, part, file.id),
    },
  });
  if (completed) await announceOrLeave(ctx, [completed]);
  return { done: completed !== undefined };
}

/**
 * Gives the part its file, and completes the upload if no other part is missing. The upload's row is locked first: of two
 * last parts at once, the second sees the first.
 */
async function attach(
  tx: FileTransaction,
  part: ExpectedPart,
  fileId: number,
  now: number,
): Promise<EndedUpload | undefined> {
  const open = await tx
    .selectFrom("s3_file_uploads")
    .select("id")
    .where("id", "=", part.uploadId)
    .where("completed_at", "is", null)
    .forUpdate()
    .executeTakeFirst();
  if (!open) throw errors.upload_aborted_or_completed();
  const { numUpdatedRows } = await tx
    .updateTable("s3_file_upload_parts")
    .set({ s3_file_id: fileId })
    .where("id", "=", part.id)
    .where("s3_file_id", "is", null)
    .executeTakeFirst();
  if (Number(numUpdatedRows) === 0) throw errors.part_already_uploaded();
  return tx
    .updateTable("s3_file_uploads")
    .set({ outcome: "completed", completed_at: timestamp(now) })
    .where("id", "=", part.uploadId)
    .where(
      sql<boolean>`not exists (select from s3_file_upload_parts where s3_file_upload_id = ${part.uploadId} and s3_file_id is null)`,
    )
    .returning(ENDED)
    .executeTakeFirst();
}

/** The sweep took the object: the part is missing again, and an upload that it had completed is open again. */
async function detach(tx: FileTransaction, part: ExpectedPart, fileId: number): Promise<void> {
  await tx
    .updateTable("s3_file_uploads")
    .set({ outcome: null, completed_at: null })
    .where("id", "=", part.uploadId)
    .where("outcome", "=", "completed")
    .where("job_enqueued_at", "is", null)
    .execute();
  await tx.updateTable("s3_file_upload_parts").set({ s3_file_id: null }).where("s3_file_id", "=", fileId).execute();
}
