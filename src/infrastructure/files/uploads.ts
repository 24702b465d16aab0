import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { AnyRunner } from "../../jobs/runner.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { signToken } from "../access/service.ts";
import { progressToken } from "../jobs/service.ts";
import { errors } from "./errors.ts";
import type { FileTables, UploadOutcome } from "./tables.ts";

/**
 * The life of an upload in parts:
 *
 *   open -> completed | expired | aborted -> its job queued -> deleted
 *
 * The row is authoritative. `completed_at` and `outcome` are set together by one statement that finds them empty, so an
 * upload gets one outcome. Then the job for that outcome is queued, then `job_enqueued_at` is set: a death in between
 * leaves an outcome without a queued job, which the incomplete sweep finds after a minute. The jobs may therefore run
 * twice and must bear it.
 */
export const PART_SIZE = 1_048_576;
const DEFAULT_EXPIRES_IN = 3600;
/** The job that follows an upload wants to be watched after the upload's own time is over. */
const PROGRESS_LONGER_BY = 1800;

export const UPLOAD_AUDIENCE = "carillon-file-upload";

/** A job to queue when an upload ends; the upload's uid is added to its kwargs. */
export interface UploadJob {
  readonly runner: AnyRunner;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

export interface UploadPlan {
  /** Bytes, at least one. */
  readonly fileSize: number;
  readonly successJob: UploadJob;
  readonly failureJob: UploadJob;
  /** The kwarg of both jobs that gets the upload's uid; default `file_upload_uid`. */
  readonly uidKwarg?: string;
  /** Seconds; default 3600. */
  readonly expiresIn?: number;
  /** A progress uid from `newUid("jp")`, if somebody watches. */
  readonly jobUid?: string;
}

/** Equal parts in a row, or the one that is shorter. Bytes are counted from 0, ends are exclusive. */
export type PartRange =
  | {
      readonly start_number: number;
      readonly start_byte: number;
      readonly number_of_parts: number;
      readonly part_size: number;
    }
  | { readonly number: number; readonly start_byte: number; readonly end_byte: number };

export interface StartedUpload {
  readonly uid: string;
  readonly jwt: string;
  readonly parts: readonly PartRange[];
  readonly progress?: { readonly uid: string; readonly jwt: string };
}

export type UploadState = "open" | UploadOutcome;

export interface UploadStatus {
  readonly state: UploadState;
  readonly parts_total: number;
  readonly parts_done: number;
  /** The first hundred that are missing. */
  readonly missing: readonly number[];
  readonly expires_at: number;
}

const SHOWN_MISSING = 100;

/** How a file of this size is cut. */
export function partRanges(fileSize: number): readonly PartRange[] {
  const whole = Math.floor(fileSize / PART_SIZE);
  const ranges: PartRange[] = [];
  if (whole > 0) ranges.push({ start_number: 1, start_byte: 0, number_of_parts: whole, part_size: PART_SIZE });
  if (fileSize > whole * PART_SIZE)
    ranges.push({ number: whole + 1, start_byte: whole * PART_SIZE, end_byte: fileSize });
  return ranges;
}

export async function startUpload(ctx: Context, plan: UploadPlan): Promise<StartedUpload> {
  if (!Number.isSafeInteger(plan.fileSize) || plan.fileSize < 1)
    throw new TypeError(`an upload has at least one byte, not ${plan.fileSize}`);
  const uid = newUid("s3fu");
  const expiresIn = plan.expiresIn ?? DEFAULT_EXPIRES_IN;
  const named = { [plan.uidKwarg ?? "file_upload_uid"]: uid };
  const now = ctx.clock.now();
  await ctx.sql
    .tables<FileTables>()
    .transaction()
    .execute(async (tx) => {
      const { id } = await tx
        .insertInto("s3_file_uploads")
        .values({
          uid,
          success_job_name: plan.successJob.runner.name,
          success_job_kwargs: kwargsOf(plan.successJob, named),
          failure_job_name: plan.failureJob.runner.name,
          failure_job_kwargs: kwargsOf(plan.failureJob, named),
          job_uid: plan.jobUid ?? null,
          created_at: timestamp(now),
          expires_at: timestamp(now + expiresIn),
        })
        .returning("id")
        .executeTakeFirstOrThrow();
      const count = Math.ceil(plan.fileSize / PART_SIZE);
      const uids = Array.from({ length: count }, () => newUid("s3fup"));
      await sql`
        insert into s3_file_upload_parts (s3_file_upload_id, uid, part_number, start_byte, end_byte)
        select ${id}::bigint, part.uid, part.number, (part.number - 1) * ${PART_SIZE}::bigint,
          least(part.number * ${PART_SIZE}::bigint, ${plan.fileSize}::bigint)
        from unnest(${uids}::text[]) with ordinality as part (uid, number)`.execute(tx);
    });
  if (plan.jobUid)
    await ctx.jobs.progress.push(plan.jobUid, {
      type: "queued",
      message: "waiting for the file to be uploaded",
      indicator: { type: "spinner" },
    });
  return {
    uid,
    jwt: await signToken(ctx, { audience: UPLOAD_AUDIENCE, subject: uid, expiresIn }),
    parts: partRanges(plan.fileSize),
    progress: plan.jobUid && {
      uid: plan.jobUid,
      jwt: await progressToken(ctx, plan.jobUid, expiresIn + PROGRESS_LONGER_BY),
    },
  } as StartedUpload;
}

/** A job that could not be queued later is refused now, while somebody is there to be told. */
function kwargsOf(job: UploadJob, named: Record<string, string>): string {
  const kwargs = { ...job.kwargs, ...named };
  const parsed = job.runner.kwargs.safeParse(kwargs);
  if (!parsed.success) throw new TypeError(`${job.runner.name} does not take these kwargs: ${parsed.error.message}`);
  return JSON.stringify(kwargs);
}

export async function readUpload(ctx: Context, uid: string): Promise<UploadStatus> {
  const { rows } = await sql<{
    outcome: UploadOutcome | null;
    expires_at: number;
    parts_total: number;
    parts_done: number;
    missing: number[] | null;
  }>`
    select upload.outcome, upload.expires_at, count(*) as parts_total, count(part.s3_file_id) as parts_done,
      (array_agg(part.part_number order by part.part_number) filter (where part.s3_file_id is null))[1:${sql.lit(SHOWN_MISSING)}]
        as missing
    from s3_file_uploads as upload join s3_file_upload_parts as part on part.s3_file_upload_id = upload.id
    where upload.uid = ${uid} group by upload.id`.execute(ctx.sql.tables());
  const [row] = rows;
  if (!row) throw errors.upload_not_found();
  return {
    state: row.outcome ?? "open",
    parts_total: row.parts_total,
    parts_done: row.parts_done,
    missing: row.missing ?? [],
    expires_at: row.expires_at,
  };
}

/** Ends an open upload; its failure job removes the parts. */
export async function abortUpload(ctx: Context, uid: string): Promise<void> {
  const upload = await ctx.sql
    .tables<FileTables>()
    .updateTable("s3_file_uploads")
    .set({ outcome: "aborted", completed_at: timestamp(ctx.clock.now()) })
    .where("uid", "=", uid)
    .where("completed_at", "is", null)
    .returning(ENDED)
    .executeTakeFirst();
  if (!upload) throw errors.upload_aborted_or_completed();
  await announceOrLeave(ctx, [upload]);
}

/** The columns that queueing an ended upload's job needs. */
export const ENDED = [
  "id",
  "uid",
  "outcome",
  "job_uid",
  "success_job_name",
  "success_job_kwargs",
  "failure_job_name",
  "failure_job_kwargs",
] as const;

export interface EndedUpload {
  readonly id: number;
  readonly uid: string;
  readonly outcome: UploadOutcome | null;
  readonly job_uid: string | null;
  readonly success_job_name: string;
  readonly success_job_kwargs: Record<string, unknown>;
  readonly failure_job_name: string;
  readonly failure_job_kwargs: Record<string, unknown>;
}

const FAILURES: Readonly<Record<Exclude<UploadOutcome, "completed">, string>> = {
  expired: "the file was not uploaded in time",
  aborted: "the upload was aborted",
};

/**
 * Queues the jobs of uploads that ended and notes it. An upload whose job cannot be queued does not stand in the way of
 * the others; it is left as it is and the incomplete sweep tries again. Answers how many were queued.
 */
export async function announceOrLeave(ctx: Context, uploads: readonly EndedUpload[]): Promise<number> {
  const announced: number[] = [];
  for (const upload of uploads)
    try {
      await queueJob(ctx, upload);
      announced.push(upload.id);
    } catch (error) {
      ctx.alerts.error(error, `the job for upload ${upload.uid} could not be queued; the sweep will try again`);
    }
  if (announced.length > 0)
    try {
      await ctx.sql
        .tables<FileTables>()
        .updateTable("s3_file_uploads")
        .set({ job_enqueued_at: timestamp(ctx.clock.now()) })
        .where("id", "in", announced)
        .execute();
    } catch (error) {
      ctx.alerts.error(error, "jobs of uploads were queued, but this could not be noted; they will be queued again");
    }
  return announced.length;
}

async function queueJob(ctx: Context, upload: EndedUpload): Promise<void> {
  if (upload.outcome === "completed")
    return ctx.jobs.enqueueNamed(upload.success_job_name, upload.success_job_kwargs, {
      jobUid: upload.job_uid ?? undefined,
    });
  // `failed` is the last thing watchers hear, so the job that cleans up runs unwatched.
  if (upload.job_uid && upload.outcome && !(await ctx.jobs.progress.read(upload.job_uid))?.done)
    await ctx.jobs.progress.push(upload.job_uid, {
      type: "failed",
      message: FAILURES[upload.outcome],
      indicator: { type: "final" },
    });
  await ctx.jobs.enqueueNamed(upload.failure_job_name, upload.failure_job_kwargs);
}
