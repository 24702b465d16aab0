import type { Context } from "../../jobs/context.ts";
import { errors } from "./errors.ts";
import { sweepPartialFileUploads } from "./jobs.ts";
import { keys } from "./keys.ts";
import { deleteAt, deletionOf, type FileLocation, protectionOf } from "./purgatory.ts";
import { isInUse } from "./rows.ts";

export { errors as fileErrors } from "./errors.ts";
export { deleteFileUpload, deleteS3FileJob, storeUploadJob } from "./jobs.ts";
export { expectPart, uploadPart } from "./parts.ts";
export type { FileLocation } from "./purgatory.ts";
export { type FilePurpose, type FileTransaction, PROTECT_FOR, type PutPlan, putFile, type StoredFile } from "./put.ts";
export {
  abortUpload,
  PART_SIZE,
  type PartRange,
  partRanges,
  readUpload,
  type StartedUpload,
  startUpload,
  UPLOAD_AUDIENCE,
  type UploadJob,
  type UploadPlan,
  type UploadStatus,
} from "./uploads.ts";

/** Seconds after which a deletion that is not meant to be immediate happens. */
export const DELETE_SOON = 600;

/** Has objects deleted, with their rows, now or in ten minutes. A file that something refers to by then is kept. */
export async function queueDelete(
  ctx: Context,
  files: readonly FileLocation[],
  options: { hint: string; when?: "now" | "soon" },
): Promise<void> {
  const soon = options.when === "soon";
  await deleteAt(
    ctx,
    files.map((file) => deletionOf(file, options.hint)),
    ctx.clock.now() + (soon ? DELETE_SOON : 0),
  );
  if (!soon && files.length > 0) ctx.jobs.nudge(sweepPartialFileUploads, {});
}

/** The same for one file and a person who waits for an answer: what must not be deleted is refused at once. */
export async function requestDelete(ctx: Context, file: FileLocation, hint: string): Promise<void> {
  if (file.bucket !== ctx.providers.objectStore.bucket) throw errors.other_bucket();
  const { commands, topology } = ctx.redis;
  const uploading = await commands.zscore(topology.key(keys.purgatory()), protectionOf(file));
  if (uploading !== null || (await isInUse(ctx, file))) throw errors.file_in_use();
  await queueDelete(ctx, [file], { hint });
}

export interface PurgatoryItem {
  readonly member: string;
  readonly due_at: number;
}

/** What waits for deletion, the earliest first. A page ends inside any number of equal times and the next goes on there. */
export async function listPurgatory(
  ctx: Context,
  page: { limit: number; cursor?: { due: number; skip: number } },
): Promise<{ items: readonly PurgatoryItem[]; next: { due: number; skip: number } | undefined }> {
  const { commands, topology } = ctx.redis;
  const { due, skip } = page.cursor ?? { due: 0, skip: 0 };
  const from = page.cursor ? due : "-inf";
  const flat = await commands.zrangebyscore(
    topology.key(keys.purgatory()),
    from,
    "+inf",
    "WITHSCORES",
    "LIMIT",
    skip,
    page.limit,
  );
  const items = Array.from({ length: flat.length / 2 }, (_, index) => ({
    member: flat[2 * index]!,
    due_at: Number(flat[2 * index + 1]),
  }));
  const last = items.at(-1)?.due_at;
  if (last === undefined || items.length < page.limit) return { items, next: undefined };
  const sameTime = items.filter((item) => item.due_at === last).length;
  return { items, next: { due: last, skip: sameTime + (last === due ? skip : 0) } };
}
