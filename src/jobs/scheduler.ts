import type { KernelContext } from "../kernel/context.ts";
import type { JobMetrics } from "./job-metrics.ts";
import { jobKeys } from "./keys.ts";
import type { RecurringSet } from "./recurring-set.ts";
import { dispatchRecurring, promote, syncRecurring, takeRecurring } from "./scripts.ts";

const TAKE = 20;
const PROMOTE = 100;
const IDLE_SECONDS = 1;
const SUPERSEDED_SECONDS = 10;
const RESCUE_SECONDS = 60;
const RESCUE_CONFIRM_SECONDS = 5;
const MIN_STALE_SECONDS = 600;
const UPDATE_PAUSE_SECONDS = 300;
/** Less is the ordinary work of a time service. */
const JUMP_SECONDS = 30;

const lag = (ctx: KernelContext) =>
  ctx.metrics.gauge("carillon_rjobs_lag_seconds", "How late the most overdue recurring job is");

/**
 * Queues recurring jobs when they are due, and wakes sleeping ones. Every worker runs one; Redis is authoritative.
 *
 * Life of a digest: in the schedule -> due -> purgatory (taken by one scheduler) -> queued and back in the schedule, which
 * is one script. A scheduler that dies in between leaves the digest in purgatory; whoever sees it there twice dispatches
 * it with the same script, so a late owner's dispatch has no effect. A scheduler whose set of jobs is not the current one
 * keeps its hands off until it is.
 */
export class Scheduler {
  readonly #ctx: KernelContext;
  readonly #set: RecurringSet;
  readonly #metrics: JobMetrics;
  readonly #stopping = new AbortController();
  #paused = false;
  #pauses = 0;
  #superseded = false;
  #suspects = new Map<string, number>();
  #wallOffset = Number.NEGATIVE_INFINITY;
  #loops: Promise<void>[] = [];

  constructor(ctx: KernelContext, set: RecurringSet, metrics: JobMetrics) {
    this.#ctx = ctx;
    this.#set = set;
    this.#metrics = metrics;
  }

  /** Makes this version's schedule the current one. Runs only when a process starts. */
  async sync(): Promise<boolean> {
    const now = this.#ctx.clock.now();
    const jobs = [...this.#set.jobs.keys()].flatMap((digest) => [digest, this.#set.next(digest, now)]);
    const changed = await this.#ctx.redis.run(
      syncRecurring,
      [jobKeys.recurring(), jobKeys.recurringPurgatory(), jobKeys.recurringQueued(), jobKeys.recurringHash()],
      [this.#set.hash, now, ...jobs],
    );
    return changed === 1;
  }

  /** After Redis lost its data no version's schedule is current, and without one every scheduler would stay passive. */
  async syncIfLost(): Promise<void> {
    const { commands, topology } = this.#ctx.redis;
    if ((await commands.exists(topology.key(jobKeys.recurringHash()))) === 0) await this.sync();
  }

  start(): void {
    this.#loops = [this.#dispatchLoop(), this.#promoteLoop(), this.#rescueLoop()];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
  }

  /**
   * While an update rolls through the fleet, old and new schedules must not alternate. If this process still waits for
   * its turn long after the last message, nobody came with a new schedule and this one goes on; if somebody did, taking
   * refuses it as superseded.
   */
  async pauseForUpdate(): Promise<void> {
    const pause = ++this.#pauses;
    this.#paused = true;
    await this.#ctx.clock.sleep(UPDATE_PAUSE_SECONDS, this.#stopping.signal);
    if (pause === this.#pauses) this.#paused = false;
  }

  /** Takes and queues what is due; answers when the next one is. */
  async dispatchDue(): Promise<number | undefined> {
    const now = this.#ctx.clock.now();
    const taken = await this.#ctx.redis.run(
      takeRecurring,
      [jobKeys.recurring(), jobKeys.recurringPurgatory(), jobKeys.recurringHash()],
      [this.#set.hash, now, TAKE],
    );
    this.#noteSuperseded(taken === undefined && this.#set.jobs.size > 0);
    if (!taken) return undefined;
    lag(this.#ctx).set(Math.max(0, ...taken.due.map((due) => now - due)));
    if (taken.digests.length > 0) await this.#dispatch(taken.digests);
    return taken.digests.length === TAKE ? now : taken.nextDue;
  }

  /** Sleeping jobs that are due join the queue. */
  async promoteDue(): Promise<number> {
    let total = 0;
    for (;;) {
      const moved = await this.#ctx.redis.run(
        promote,
        [jobKeys.delayed(), jobKeys.hot()],
        [this.#ctx.clock.now(), PROMOTE],
      );
      total += moved;
      if (moved < PROMOTE) return total;
    }
  }

  /** Dispatches what has been in purgatory for two looks at least five seconds apart: its scheduler died. */
  async rescuePurgatory(): Promise<number> {
    const { commands, topology } = this.#ctx.redis;
    const now = this.#ctx.clock.monotonic();
    const found = await commands.smembers(topology.key(jobKeys.recurringPurgatory()));
    const lost = found.filter((digest) => {
      const since = this.#suspects.get(digest);
      return since !== undefined && now - since >= RESCUE_CONFIRM_SECONDS && this.#set.jobs.has(digest);
    });
    this.#suspects = new Map(found.map((digest) => [digest, this.#suspects.get(digest) ?? now]));
    if (lost.length > 0) await this.#dispatch(lost);
    return found.length;
  }

  /**
   * When this host's clock was set back, jobs that it dispatched meanwhile are due in a far future, and would rest until
   * then. Once after each such jump, whatever is later than its next two occurrences becomes due at the next.
   */
  async #returnFromFuture(): Promise<void> {
    const { clock, redis } = this.#ctx;
    const offset = clock.now() - clock.monotonic();
    const setBack = offset < this.#wallOffset - JUMP_SECONDS;
    this.#wallOffset = offset;
    if (!setBack) return;
    const now = clock.now();
    const key = redis.topology.key(jobKeys.recurring());
    const flat = await redis.commands.zrange(key, "0", "-1", "WITHSCORES");
    const late = [...this.#set.jobs.keys()].flatMap((digest) => {
      const at = flat.indexOf(digest);
      const next = this.#set.next(digest, now);
      return at >= 0 && Number(flat[at + 1]) > this.#set.next(digest, next) ? [next, digest] : [];
    });
    if (late.length > 0) await redis.commands.zadd(key, "XX", "LT", ...late);
  }

  async #dispatch(digests: readonly string[]): Promise<void> {
    const now = this.#ctx.clock.now();
    const items = digests.flatMap((digest) => {
      const next = this.#set.next(digest, now);
      return [digest, next, this.#set.entry(digest, now), Math.max(MIN_STALE_SECONDS, 2 * (next - now))];
    });
    const results = await this.#ctx.redis.run(
      dispatchRecurring,
      [
        jobKeys.recurring(),
        jobKeys.recurringPurgatory(),
        jobKeys.recurringQueued(),
        jobKeys.recurringHash(),
        jobKeys.hot(),
      ],
      [this.#set.hash, now, ...items],
    );
    for (const [index, digest] of digests.entries()) {
      const { name } = this.#set.jobs.get(digest)!;
      if (results?.[index] === 2) this.#metrics.count(name, "coalesced");
      if (results?.[index] === 3)
        this.#ctx.alerts.warning("rjobs:stale_marker", `${name}: its waiting entry was lost; it is queued again`);
    }
  }

  async #dispatchLoop(): Promise<void> {
    await this.#loop(async () => {
      if (this.#paused) return IDLE_SECONDS;
      await this.#returnFromFuture();
      const nextDue = await this.dispatchDue();
      if (this.#superseded) return SUPERSEDED_SECONDS;
      const wait = nextDue === undefined ? IDLE_SECONDS : nextDue - this.#ctx.clock.now();
      return Math.min(IDLE_SECONDS, Math.max(0, wait));
    });
  }

  async #promoteLoop(): Promise<void> {
    await this.#loop(async () => {
      await this.promoteDue();
      return IDLE_SECONDS;
    });
  }

  async #rescueLoop(): Promise<void> {
    await this.#loop(async () => {
      const suspects = await this.rescuePurgatory();
      return suspects > 0 ? RESCUE_CONFIRM_SECONDS : RESCUE_SECONDS;
    });
  }

  async #loop(turn: () => Promise<number>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      let wait = IDLE_SECONDS;
      try {
        wait = await turn();
      } catch (error) {
        this.#ctx.log.warn({ err: error }, "the scheduler could not reach Redis; it tries again");
      }
      if (!this.#stopping.signal.aborted) await this.#ctx.clock.sleep(wait, this.#stopping.signal);
    }
  }

  #noteSuperseded(superseded: boolean): void {
    if (superseded && !this.#superseded)
      this.#ctx.log.info("another version's schedule is current; this scheduler waits until its own is");
    this.#superseded = superseded;
  }
}
