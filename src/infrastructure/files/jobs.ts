import { z } from "zod";
import type { JobContext } from "../../jobs/context.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { type Lock, lockKeys } from "../../mechanisms/lock/index.ts";
import { deleteS3File, deleteUpload } from "./deletion.ts";
import { sweepIncompleteUploads } from "./incomplete.ts";
import { keys } from "./keys.ts";
import { storeUpload } from "./store-upload.ts";
import { hasDue, type StopReason, sweepPurgatory } from "./sweep.ts";

const NoKwargs = z.strictObject({});
const FileUploadUid = z.string().regex(/^crl_s3fu_[\w-]{22}$/);
const RETRY = [60, 300, 1800];

/** Runs a sweep that must be alone. A held lock ends the job without effect. */
async function alone(
  ctx: JobContext,
  key: KeyName<"string">,
  work: (lock: Lock) => Promise<StopReason>,
): Promise<StopReason> {
  const stopped = await ctx.locks.withLock(key, { kind: "owner", wait: "fail" }, work);
  ctx.log.info({ runner: ctx.job.name, stop_reason: stopped }, "sweep ended");
  return stopped;
}

export const sweepPartialFileUploads: Runner<typeof NoKwargs> = defineRunner({
  name: "runners.sweep_partial_file_uploads",
  category: 1,
  kwargs: NoKwargs,
  doc: "Deletes objects whose upload never finished, and those that were given up.",
  budget: 50,
  async run(ctx) {
    const stopped = await alone(ctx, keys.sweepLock(), (lock) => sweepPurgatory(ctx, lock));
    // What became due while the lock was held found nobody to start for it.
    if (stopped !== "signal" && (await hasDue(ctx))) ctx.jobs.nudge(sweepPartialFileUploads, {});
  },
});

export const deleteFileUpload = defineRunner({
  name: "runners.delete_file_upload",
  category: 2,
  kwargs: z.strictObject({ file_upload_uid: FileUploadUid }),
  doc: "Deletes an upload with its parts.",
  retry: RETRY,
  run: (ctx, kwargs) => deleteUpload(ctx, kwargs.file_upload_uid),
});

export const sweepIncompleteFileUploads: Runner<typeof NoKwargs> = defineRunner({
  name: "runners.sweep_incomplete_file_uploads",
  category: 2,
  kwargs: NoKwargs,
  doc: "Ends uploads that were not finished in time, and queues what a dead process did not.",
  budget: 10,
  async run(ctx) {
    const key = lockKeys.runnerLock({ runner: "sweep_incomplete_file_uploads" });
    const stopped = await alone(ctx, key, () =>
      sweepIncompleteUploads(ctx, (uids) =>
        ctx.jobs.enqueueMany(
          deleteFileUpload,
          uids.map((file_upload_uid) => ({ file_upload_uid })),
        ),
      ),
    );
    if (stopped === "time_exhausted") ctx.jobs.nudge(sweepIncompleteFileUploads, {});
  },
});

export const deleteS3FileJob = defineRunner({
  name: "runners.delete_s3_file",
  category: 2,
  kwargs: z.strictObject({ uid: z.string().optional(), key: z.string().optional() }),
  doc: "Deletes one file, by its uid or its key.",
  retry: RETRY,
  run: (ctx, kwargs) => deleteS3File(ctx, kwargs),
});

export const storeUploadJob = defineRunner({
  name: "runners.files.store_upload",
  category: 1,
  kwargs: z.strictObject({ file_upload_uid: FileUploadUid, name: z.string(), content_type: z.string() }),
  doc: "Puts the parts of an upload together to one file, and has the upload deleted.",
  retry: RETRY,
  async run(ctx, kwargs) {
    await ctx.progress("putting the parts together", { type: "spinner" });
    const uid = await storeUpload(ctx, {
      uploadUid: kwargs.file_upload_uid,
      name: kwargs.name,
      contentType: kwargs.content_type,
    });
    await ctx.jobs.enqueue(deleteFileUpload, { file_upload_uid: kwargs.file_upload_uid });
    if (ctx.job.jobUid && uid)
      await ctx.jobs.progress.push(ctx.job.jobUid, {
        type: "succeeded",
        message: `stored as ${uid}`,
        indicator: { type: "final" },
      });
  },
});

export const runners = [
  sweepPartialFileUploads,
  sweepIncompleteFileUploads,
  deleteFileUpload,
  deleteS3FileJob,
  storeUploadJob,
];

export const recurring = [
  recur(sweepPartialFileUploads, {}, { minutes: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55], seconds: [30] }),
  recur(sweepIncompleteFileUploads, {}, { minutes: [0, 15, 30, 45], seconds: [0] }),
];
