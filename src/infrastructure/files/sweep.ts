import type { JobContext } from "../../jobs/context.ts";
import { json } from "../../kernel/keyspace/index.ts";
import { type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import { purgatorySchedule } from "../../mechanisms/purgatory-schedule/index.ts";
import { attempt, flagLimit } from "../../mechanisms/rate-limit/index.ts";
import { isObjectKey } from "../../providers/object-store.ts";
import { errors } from "./errors.ts";
import { ALERT_WINDOW, FileMember, keys } from "./keys.ts";
import { deleteRows } from "./rows.ts";

/**
 * The sweep of `files:purgatory`, the only thing that deletes objects nobody unprotected in time.
 *
 *   waiting -> due -> in the sweep's hands -> row gone -> object gone -> forgotten
 *
 * The two sets are authoritative; a member is always in exactly one. Each arrow may be taken twice without harm, so a
 * sweep that died is simply repeated from `files:sweep_purgatory` by the next. Three side roads lead out: a file that
 * something refers to is kept and forgotten, a member that makes no sense is set aside, and when the store or the
 * database cannot act the member waits ten more minutes.
 */
export type StopReason = "list_exhausted" | "time_exhausted" | "signal";

export const SWEEP_BATCH = 100;
const PARALLEL_DELETES = 5;
const POSTPONE_SECONDS = 600;
const SHOWN = 300;

const alertOncePerHour = flagLimit({ reason: "told_already", window: ALERT_WINDOW });

/** What the sweep understands: any order of fields and any whitespace, but no key that could lead out of the store. */
const readable = json(FileMember.refine(({ key }) => isObjectKey(key), "its key is not one that an object can have"));

const schedule = purgatorySchedule({
  schedule: keys.purgatory(),
  purgatory: keys.sweepPurgatory(),
  codec: readable,
});

interface Due {
  /** The member as it stands in the set. */
  readonly raw: Buffer;
  readonly value: FileMember;
}

export async function sweepPurgatory(ctx: JobContext, lock: Lock): Promise<StopReason> {
  let first = true;
  for (;;) {
    const stop = stopReason(ctx, lock);
    if (stop) return stop;
    const claim = unlessFenced(await schedule.shift(ctx, lock.fence, SWEEP_BATCH));
    if (claim.recovered && first)
      ctx.alerts.warning(
        "runners.sweep_partial_file_uploads:recovering",
        `an earlier sweep left ${claim.size} objects half way`,
      );
    first = false;
    if (claim.size === 0) return "list_exhausted";
    const interrupted = await sweepBatch(ctx, lock);
    if (interrupted) return interrupted;
  }
}

/** Whether a sweep that starts now would have something to do. */
export async function hasDue(ctx: JobContext): Promise<boolean> {
  const { commands, topology } = ctx.redis;
  const [due, held] = await Promise.all([
    commands.zcount(topology.key(keys.purgatory()), "-inf", ctx.clock.now()),
    commands.zcard(topology.key(keys.sweepPurgatory())),
  ]);
  return due + held > 0;
}

function stopReason(ctx: JobContext, lock: Lock): StopReason | undefined {
  if (ctx.shuttingDown() || lock.signal.aborted) return "signal";
  return ctx.budget.exhausted() ? "time_exhausted" : undefined;
}

async function sweepBatch(ctx: JobContext, lock: Lock): Promise<StopReason | undefined> {
  const { bucket } = ctx.providers.objectStore;
  const entries = await schedule.read(ctx, 0, SWEEP_BATCH);
  const foreign = entries.filter(({ value }) => value.bucket !== bucket);
  await schedule.quarantine(
    ctx,
    foreign.map(({ raw }) => ({ raw, reason: `this installation keeps its files in the bucket ${bucket}` })),
  );
  const due = entries.filter(({ value }) => value.bucket === bucket);
  for (const { raw, value } of due)
    if (!value.expected) ctx.alerts.warning("files:upload_timed_out", `an upload never finished: ${shown(raw)}`);

  const deletable = await withoutRows(ctx, lock, due);
  for (let start = 0; start < deletable.length; start += PARALLEL_DELETES) {
    const stop = stopReason(ctx, lock);
    if (stop) return stop;
    await deleteObjects(ctx, lock, deletable.slice(start, start + PARALLEL_DELETES));
  }
  return undefined;
}

function shown(raw: Buffer): string {
  return raw.toString("utf8").slice(0, SHOWN);
}

/** Deletes the rows, forgets what is in use, and answers whose objects are to go. */
async function withoutRows(ctx: JobContext, lock: Lock, due: readonly Due[]): Promise<readonly Due[]> {
  let inUse: ReadonlySet<unknown>;
  try {
    inUse = await deleteRows(
      ctx,
      due.map(({ value }) => value),
    );
  } catch (error) {
    await waitLonger(ctx, lock, due, error);
    return [];
  }
  const kept = due.filter(({ value }) => inUse.has(value));
  for (const { raw, value } of kept)
    ctx.alerts.warning("files:in_use", `kept, because something refers to it: ${shown(raw)}`, {
      urgent: value.expected === true,
    });
  await forget(ctx, kept);
  return due.filter(({ value }) => !inUse.has(value));
}

async function deleteObjects(ctx: JobContext, lock: Lock, group: readonly Due[]): Promise<void> {
  const outcomes = await Promise.allSettled(group.map(({ value }) => ctx.providers.objectStore.delete(value.key)));
  const done = group.filter((_, index) => outcomes[index]!.status === "fulfilled");
  const failed = group.filter((_, index) => outcomes[index]!.status === "rejected");
  await forget(ctx, done);
  const counter = ctx.metrics.counter("carillon_files_swept_total", "Objects that the sweep deleted.", ["expected"]);
  for (const { value } of done) counter.inc({ expected: String(value.expected === true) });
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure) await waitLonger(ctx, lock, failed, failure.reason);
}

async function forget(ctx: JobContext, group: readonly Due[]): Promise<void> {
  await schedule.ack(
    ctx,
    group.map(({ raw }) => raw),
  );
}

async function waitLonger(ctx: JobContext, lock: Lock, group: readonly Due[], error: unknown): Promise<void> {
  if (group.length === 0) return;
  const dueAt = ctx.clock.now() + POSTPONE_SECONDS;
  const members = group.map(({ raw }) => ({ raw, dueAt }));
  unlessFenced(await schedule.reschedule(ctx, lock.fence, members));
  ctx.log.warn({ err: error, count: group.length }, "the sweep could not delete; it will try again");
  const told = await attempt(ctx, [alertOncePerHour(keys.sweepAlerted())]);
  if (!told.allowed) return;
  const reason = error instanceof Error ? error.message : String(error);
  ctx.alerts.warning("files:sweep_postponed", `${group.length} objects wait ten more minutes: ${reason}`, {
    urgent: errors.file_store_refused.matches(error),
  });
}
