import type { KernelContext } from "../kernel/context.ts";
import type { ProgressEvent, ProgressReports } from "./context.ts";
import { jobKeys } from "./keys.ts";
import { pushProgress } from "./scripts.ts";

type NewEvent = Omit<ProgressEvent, "seq" | "occurred_at">;

export const PROGRESS_TTL_MS = 1_800_000;
const MESSAGE_LIMIT = 255;
/** A chatty job's `progress` events are coalesced to five a second; all other types are always told. */
const COALESCE_SECONDS = 0.2;

interface Chatter {
  lastPushedAt: number;
  waiting: NewEvent | undefined;
}

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
    const now = this.#ctx.clock.monotonic();
    const chatter = this.#chatter.get(jobUid) ?? { lastPushedAt: Number.NEGATIVE_INFINITY, waiting: undefined };
    this.#chatter.set(jobUid, chatter);
    if (event.type === "progress") {
      if (now - chatter.lastPushedAt < COALESCE_SECONDS) {
        if (!chatter.waiting) void this.#pushWaitingLater(jobUid, chatter);
        chatter.waiting = event;
        return 0;
      }
      chatter.lastPushedAt = now;
      // A timer that is late must not tell an older word after this one.
      chatter.waiting = undefined;
      return this.#append(jobUid, event);
    }
    const { waiting } = chatter;
    chatter.waiting = undefined;
    if (waiting) await this.#append(jobUid, waiting);
    if (isTerminal(event.type)) {
      this.#ended.add(jobUid);
      this.#chatter.delete(jobUid);
    }
    return this.#append(jobUid, event);
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

  async #pushWaitingLater(jobUid: string, chatter: Chatter): Promise<void> {
    await this.#ctx.clock.sleep(COALESCE_SECONDS);
    const { waiting } = chatter;
    if (!waiting) return;
    chatter.waiting = undefined;
    chatter.lastPushedAt = this.#ctx.clock.monotonic();
    // Progress is news, not state: when Redis is away, the next event tells more anyway.
    await this.#append(jobUid, waiting).catch(() => {});
  }
}
