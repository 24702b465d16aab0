import type { KernelContext } from "../kernel/context.ts";
import type { ProgressEvent, ProgressReports } from "./context.ts";
import type { Claim } from "./held.ts";
import { jobKeys } from "./keys.ts";
import { pushHeldProgress, pushProgress } from "./scripts.ts";

type NewEvent = Omit<ProgressEvent, "seq" | "occurred_at">;

export const PROGRESS_TTL_MS = 1_800_000;
const MESSAGE_LIMIT = 255;
/** A chatty job's `progress` events are coalesced to five a second; all other types are always told. */
const COALESCE_SECONDS = 0.2;

/** Exists while a job has told of its progress less than that long ago. */
interface Chatter {
  /** The latest word that was not told yet. */
  waiting: NewEvent | undefined;
}

/** How many ends are remembered at most; they matter only until the worker asks, which is at once. */
const REMEMBERED_ENDS = 1000;

/** The text of an event without its number, which only Redis can give. */
export function encodeProgress(event: NewEvent, now: number): string {
  return JSON.stringify({
    type: event.type,
    message: event.message.slice(0, MESSAGE_LIMIT),
    indicator: event.indicator,
    occurred_at: now,
    ...(event.spawned ? { spawned: event.spawned } : {}),
  });
}

export function isTerminal(type: ProgressEvent["type"]): boolean {
  return type === "failed" || type === "succeeded";
}

/** Tells watchers what happens to a job: kept for late readers, published for present ones. */
export class ProgressBoard implements ProgressReports {
  readonly #ctx: Pick<KernelContext, "redis" | "clock">;
  readonly #chatter = new Map<string, Chatter>();
  readonly #ended = new Set<string>();

  constructor(ctx: Pick<KernelContext, "redis" | "clock">) {
    this.#ctx = ctx;
  }

  async push(jobUid: string, event: NewEvent): Promise<number> {
    const chatter = this.#chatter.get(jobUid);
    if (event.type === "progress") {
      if (chatter) {
        chatter.waiting = event;
        return 0;
      }
      void this.#coalesce(jobUid);
      return this.#append(jobUid, event);
    }
    const waiting = chatter?.waiting;
    if (chatter) chatter.waiting = undefined;
    if (waiting) await this.#append(jobUid, waiting);
    const seq = await this.#append(jobUid, event);
    if (isTerminal(event.type)) this.#rememberEnd(jobUid);
    return seq;
  }

  /** The terminal event of an entry, told only while its claim stands. */
  async pushEnd(claim: Claim, jobUid: string, event: NewEvent): Promise<void> {
    const chatter = this.#chatter.get(jobUid);
    if (chatter) chatter.waiting = undefined;
    const parameters = { job_uid: jobUid };
    await this.#ctx.redis.run(
      pushHeldProgress,
      [
        jobKeys.running({ worker_uid: claim.workerUid }),
        jobKeys.progressEvents(parameters),
        jobKeys.progressCount(parameters),
      ],
      [claim.number, encodeProgress(event, this.#ctx.clock.now()), jobKeys.progress(parameters), PROGRESS_TTL_MS],
    );
  }

  /** True once this process has told a terminal event of that job, and forgets it. */
  takeEnded(jobUid: string): boolean {
    return this.#ended.delete(jobUid);
  }

  async read(
    jobUid: string,
    since = 0,
  ): Promise<{ events: ProgressEvent[]; last_seq: number; done: boolean } | undefined> {
    const { commands, topology } = this.#ctx.redis;
    const parameters = { job_uid: jobUid };
    const [texts, count] = await Promise.all([
      commands.lrange(topology.key(jobKeys.progressEvents(parameters)), 0, -1),
      commands.get(topology.key(jobKeys.progressCount(parameters))),
    ]);
    if (count === null) return undefined;
    const all = texts.map((text) => JSON.parse(text) as ProgressEvent);
    const last = all.at(-1);
    return {
      events: all.filter((event) => event.seq > since),
      last_seq: last?.seq ?? Number(count),
      done: last !== undefined && isTerminal(last.type),
    };
  }

  async #append(jobUid: string, event: NewEvent): Promise<number> {
    const parameters = { job_uid: jobUid };
    const { seq } = await this.#ctx.redis.run(
      pushProgress,
      [jobKeys.progressEvents(parameters), jobKeys.progressCount(parameters)],
      [
        encodeProgress(event, this.#ctx.clock.now()),
        jobKeys.progress(parameters),
        PROGRESS_TTL_MS,
        isTerminal(event.type) ? 1 : 0,
      ],
    );
    return seq;
  }

  /** For as long as the job keeps talking, tells its latest word five times a second. */
  async #coalesce(jobUid: string): Promise<void> {
    const chatter: Chatter = { waiting: undefined };
    this.#chatter.set(jobUid, chatter);
    for (;;) {
      await this.#ctx.clock.sleep(COALESCE_SECONDS);
      const { waiting } = chatter;
      chatter.waiting = undefined;
      if (!waiting) break;
      // Progress is news, not state: when Redis is away, the next event tells more anyway.
      await this.#append(jobUid, waiting).catch(() => {});
    }
    this.#chatter.delete(jobUid);
  }

  #rememberEnd(jobUid: string): void {
    if (this.#ended.size >= REMEMBERED_ENDS) this.#ended.clear();
    this.#ended.add(jobUid);
  }
}
