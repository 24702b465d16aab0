import { z } from "zod";
import { jobErrors } from "./errors.ts";
import { RUNNER_NAME } from "./runner.ts";

/** The largest job text that a queue takes. */
export const MAX_ENTRY_BYTES = 512 * 1024;

/** A job as it stands in a queue. Others write name, kwargs and queued_at; the rest is the job system's own. */
export const JobEntry = z.looseObject({
  name: z.string().regex(RUNNER_NAME).max(200),
  kwargs: z.record(z.string(), z.unknown()),
  queued_at: z.number(),
  uid: z.string().optional(),
  deliveries: z.int().min(0).optional(),
  attempt: z.int().min(0).optional(),
  bounces: z.int().min(0).optional(),
  deferrals: z.int().min(0).optional(),
  rjob: z.string().optional(),
  job_uid: z.string().optional(),
});
export type JobEntry = z.output<typeof JobEntry>;

export const FailureReason = z.enum(["unknown_runner", "invalid_kwargs", "error", "timeout", "crashed", "bounce_loop"]);
export type FailureReason = z.output<typeof FailureReason>;

export const FailedJob = z.object({
  id: z.string(),
  raw: z.string(),
  reason: FailureReason,
  error: z.string(),
  worker: z.string(),
  deliveries: z.int(),
  failed_at: z.number(),
});
export type FailedJob = z.output<typeof FailedJob>;

export const ProgressEntry = z.object({
  seq: z.int().min(1),
  type: z.enum(["queued", "started", "bounce", "spawned", "progress", "failed", "succeeded"]),
  message: z.string().max(255),
  indicator: z
    .union([
      z.object({ type: z.literal("bar"), at: z.number(), of: z.number() }),
      z.object({ type: z.literal("spinner") }),
      z.object({ type: z.literal("final") }),
    ])
    .nullable(),
  occurred_at: z.number(),
  spawned: z.object({ uid: z.string(), name: z.string() }).optional(),
});

/** Recurring entries start with this text, so that the take script can tell them apart without decoding JSON. */
export const RECURRING_PREFIX = '{"rjob":"';

const prefixes = new Map<string, string>();

function prefixOf(name: string): string {
  let prefix = prefixes.get(name);
  if (prefix === undefined) {
    prefix = `"name":${JSON.stringify(name)},"kwargs":`;
    prefixes.set(name, prefix);
  }
  return prefix;
}

/** The text of a new job: exactly the three fields that every writer uses, plus ours where they are set. */
export function encodeJob(
  job: { name: string; kwargs: unknown; queued_at: number },
  own: { uid?: string; rjob?: string; job_uid?: string } = {},
): string {
  const rjob = own.rjob === undefined ? "{" : `${RECURRING_PREFIX}${own.rjob}",`;
  const uid = own.uid === undefined ? "" : `,"uid":"${own.uid}"`;
  const jobUid = own.job_uid === undefined ? "" : `,"job_uid":${JSON.stringify(own.job_uid)}`;
  const raw = `${rjob}${prefixOf(job.name)}${JSON.stringify(job.kwargs)},"queued_at":${job.queued_at}${uid}${jobUid}}`;
  return withinLimit(job.name, raw);
}

/** The text of a job that is told of something: its own arguments, and a story as `data_raw`, which needs no escaping. */
export function encodeCallback(
  { name, kwargs }: { readonly name: string; readonly kwargs: Readonly<Record<string, unknown>> },
  data_raw: string,
  queued_at: number,
): string {
  const own = JSON.stringify(kwargs);
  const before = own === "{}" ? "{" : `${own.slice(0, -1)},`;
  return withinLimit(name, `{${prefixOf(name)}${before}"data_raw":"${data_raw}"},"queued_at":${queued_at}}`);
}

/** The texts of many new jobs of one name, sharing whatever they have in common. */
export function encodeJobs(name: string, queued_at: number, items: readonly unknown[]): string[] {
  const head = `{${prefixOf(name)}`;
  const tail = `,"queued_at":${queued_at}}`;
  return items.map((kwargs) => withinLimit(name, head + JSON.stringify(kwargs) + tail));
}

function withinLimit(name: string, raw: string): string {
  if (raw.length > MAX_ENTRY_BYTES / 4 && Buffer.byteLength(raw) > MAX_ENTRY_BYTES)
    throw jobErrors.job_too_large({
      message: `${name} has ${Buffer.byteLength(raw)} bytes of JSON; at most ${MAX_ENTRY_BYTES} fit a queue`,
    });
  return raw;
}

/** The text of a job that goes back into a queue with other counters. */
export function reencodeJob(job: JobEntry): string {
  const { rjob, ...rest } = job;
  return rjob === undefined ? JSON.stringify(rest) : `${RECURRING_PREFIX}${rjob}",${JSON.stringify(rest).slice(1)}`;
}

export type ParsedEntry =
  | { readonly ok: true; readonly job: JobEntry }
  | { readonly ok: false; readonly error: string };

/** Reads an entry. The shape is checked by hand: this runs for every job, and a schema costs more than the job system. */
export function parseEntry(raw: string): ParsedEntry {
  let job: unknown;
  try {
    job = JSON.parse(raw);
  } catch (error) {
    return { ok: false, error: `not JSON: ${(error as Error).message}` };
  }
  if (isPlainEntry(job)) return { ok: true, job };
  const parsed = JobEntry.safeParse(job);
  if (parsed.success) return { ok: true, job: parsed.data };
  return { ok: false, error: z.prettifyError(parsed.error) };
}

function isPlainEntry(value: unknown): value is JobEntry {
  if (typeof value !== "object" || value === null) return false;
  const job = value as Record<string, unknown>;
  return (
    typeof job.name === "string" &&
    (prefixes.has(job.name) || (job.name.length <= 200 && RUNNER_NAME.test(job.name))) &&
    typeof job.kwargs === "object" &&
    job.kwargs !== null &&
    !Array.isArray(job.kwargs) &&
    typeof job.queued_at === "number" &&
    job.deliveries === undefined &&
    job.attempt === undefined &&
    job.bounces === undefined &&
    job.deferrals === undefined &&
    job.uid === undefined &&
    job.rjob === undefined &&
    job.job_uid === undefined
  );
}
