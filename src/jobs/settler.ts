import { newUid } from "../kernel/ids.ts";
import { alertQuarantined, quarantineEntry, quarantineOf } from "../mechanisms/quarantine/index.ts";
import type { Context } from "./context.ts";
import { type FailureReason, type JobEntry, parseEntry, reencodeJob } from "./entry.ts";
import type { Claim, Held } from "./held.ts";
import { jobKeys } from "./keys.ts";
import * as scripts from "./scripts.ts";

const GROUP = 500;
const RETRY_SECONDS = 0.5;
const ERROR_TEXT_LIMIT = 2000;

/**
 * Says how held entries ended. Finishes are by far the commonest: they are collected while an earlier call is under way
 * and sent together, so a worker that runs small jobs makes one call for hundreds of them.
 */
export class Settler {
  readonly #ctx: Context;
  #waiting: Claim[] = [];
  #sending: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Forgets a job that is done. A lost call is repeated until it arrives; the take number makes that harmless. */
  finish(held: Held): void {
    this.#waiting.push(held);
    this.#sending ??= this.#send();
  }

  /**
   * Resolves when every finish so far has arrived. From now on a call that fails is not repeated: the process ends, and
   * what it still claims goes to others when it is buried.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    while (this.#sending) await this.#sending;
  }

  /** Forgets one entry and waits for the answer; false when it was rescued and is no longer ours. */
  async finishNow(held: Held): Promise<boolean> {
    const removed = await this.#ctx.redis.run(scripts.finish, [running(held)], [held.number]);
    return removed === 1;
  }

  async refile(category: 1 | 2, held: readonly Claim[]): Promise<void> {
    await this.#ctx.redis.run(
      scripts.refile,
      [running(held[0]!), jobKeys.hotByCategory({ category })],
      held.map(({ number }) => number),
    );
  }

  /** Unstarted entries go back to the front, unchanged and in their order. */
  async putBack(held: readonly Claim[]): Promise<void> {
    if (held.length === 0) return;
    const numbers = held.map(({ number }) => number).sort((a, b) => b - a);
    await this.#ctx.redis.run(scripts.putBack, [running(held[0]!), jobKeys.hot()], numbers);
  }

  /**
   * Entries that this process holds and does not know, because the reply to their take was lost or their end could not be
   * recorded. A recurring one may have begun, so it waits again only if no newer entry of it does.
   */
  async putBackUnknown(workerUid: string, numbers: readonly number[]): Promise<void> {
    if (numbers.length === 0) return;
    const { commands, topology } = this.#ctx.redis;
    const raws = await commands.hmget(topology.key(running({ workerUid })), ...numbers.map(String));
    const recurring: (Claim & Pick<Held, "job">)[] = [];
    const plain: Claim[] = [];
    for (const [index, number] of numbers.entries()) {
      const parsed = parseEntry(raws[index] ?? "");
      if (parsed.ok && parsed.job.rjob !== undefined) recurring.push({ workerUid, number, job: parsed.job });
      else plain.push({ workerUid, number });
    }
    await this.putBack(plain);
    await this.#requeue(recurring, "front", 0);
  }

  /** Back to the queue because the run was interrupted, not because it failed. */
  bounce(held: readonly Held[], side: "front" | "back"): Promise<void> {
    return this.#requeue(held, side, 1);
  }

  async #requeue(held: readonly (Claim & Pick<Held, "job">)[], side: "front" | "back", bounces: number): Promise<void> {
    if (held.length === 0) return;
    const ordered = side === "front" ? [...held].sort((a, b) => b.number - a.number) : held;
    const now = this.#ctx.clock.now();
    await this.#ctx.redis.run(
      scripts.requeue,
      [running(held[0]!), jobKeys.hot(), jobKeys.recurringQueued()],
      [
        side,
        now,
        ...ordered.flatMap(({ number, job }) => [
          number,
          reencodeJob({ ...job, ...pushedAgain(job, now), bounces: (job.bounces ?? 0) + bounces }),
          job.rjob ?? "",
          job.queued_at,
        ]),
      ],
    );
  }

  async delay(
    held: Claim & Pick<Held, "job">,
    changes: { attempt?: number; deferrals?: number },
    seconds: number,
  ): Promise<void> {
    const job = { ...held.job, ...changes, uid: held.job.uid ?? newUid("job") };
    await this.#ctx.redis.run(
      scripts.delay,
      [running(held), jobKeys.delayed(), jobKeys.recurringQueued()],
      [held.number, reencodeJob(job), this.#ctx.clock.now() + seconds, held.job.rjob ?? "", held.job.queued_at],
    );
  }

  async fail(held: Claim & Pick<Held, "job"> & { raw: string }, reason: FailureReason, error: string): Promise<void> {
    await this.#ctx.redis.run(
      scripts.fail,
      [running(held), jobKeys.failed(), jobKeys.recurringQueued()],
      [
        held.number,
        failureText(held.raw, reason, error, held.workerUid, held.job.deliveries ?? 0, this.#ctx.clock.now()),
        held.job.rjob ?? "",
        held.job.queued_at,
      ],
    );
  }

  /** Entries that are not jobs at all. */
  async quarantine(claims: readonly (Claim & { raw: string | Buffer; reason: string })[]): Promise<void> {
    const queue = jobKeys.hot();
    const items = claims.flatMap(({ number, raw, reason }) => [number, quarantineEntry(this.#ctx, queue, raw, reason)]);
    await this.#ctx.redis.run(scripts.quarantine, [running(claims[0]!), quarantineOf(queue)], items);
    await alertQuarantined(this.#ctx, queue, claims.length, claims[0]!.reason);
  }

  async #send(): Promise<void> {
    // One turn of the event loop lets the other jobs that end in it join the first call.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      const { workerUid } = this.#waiting[0]!;
      const group: Claim[] = [];
      while (group.length < GROUP && this.#waiting[group.length]?.workerUid === workerUid)
        group.push(this.#waiting[group.length]!);
      this.#waiting = this.#waiting.slice(group.length);
      try {
        await this.#ctx.redis.run(
          scripts.finish,
          [running(group[0]!)],
          group.map(({ number }) => number),
        );
      } catch (error) {
        this.#ctx.log.warn({ err: error, entries: group.length }, "finishing jobs failed");
        if (this.#closing.signal.aborted) break;
        this.#waiting = [...group, ...this.#waiting];
        await this.#ctx.clock.sleep(RETRY_SECONDS, this.#closing.signal);
      }
    }
    this.#sending = undefined;
  }
}

/** A recurring entry and its marker carry the same time, by which scripts know that one belongs to the other. */
export function pushedAgain(job: JobEntry, now: number): Partial<JobEntry> {
  return job.rjob === undefined ? {} : { queued_at: now };
}

function running(held: Pick<Held, "workerUid">): string {
  return jobKeys.running({ worker_uid: held.workerUid });
}

export function failureText(
  raw: string,
  reason: FailureReason,
  error: string,
  worker: string,
  deliveries: number,
  now: number,
): string {
  return JSON.stringify({
    id: newUid("jf"),
    raw,
    reason,
    error: error.slice(0, ERROR_TEXT_LIMIT),
    worker,
    deliveries,
    failed_at: now,
  });
}
