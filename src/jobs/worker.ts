import type { Redis } from "ioredis";
import { newUid } from "../kernel/ids.ts";
import { Admission } from "./admission.ts";
import type { Context } from "./context.ts";
import { type Execution, execute, settleTimedOut } from "./execute.ts";
import { type Heartbeat, inlineHeartbeat, threadHeartbeat } from "./heartbeat.ts";
import { abortHeld, type Held } from "./held.ts";
import { JobMetrics } from "./job-metrics.ts";
import { jobKeys } from "./keys.ts";
import type { JobQueue } from "./queue.ts";
import { reapSilentWorkers } from "./reaper.ts";
import { runContexts } from "./run-context.ts";
import { Scheduler } from "./scheduler.ts";
import * as scripts from "./scripts.ts";
import { jobSettings } from "./settings.ts";
import { Settler } from "./settler.ts";
import { MAX_PREFETCH, type SlotKind, Slots } from "./slots.ts";

const PUSH_WAIT_SECONDS = 1;
const BACKOFF_SECONDS = [0.5, 1, 2, 4, 8, 10];
const SWEEP_SECONDS = 1;
const UNSTARTED_SECONDS = 1;
const REAP_SECONDS = 15;
const RECONCILE_SECONDS = 30;
const CLOCK_CHECK_SECONDS = 60;
const CLOCK_SKEW_SECONDS = 30;
const OUTBOX_SECONDS = 5;
const BUSY_LOOK_SECONDS = 0.1;
const TIMEOUT_GRACE_SECONDS = 10;
const LISTED_JOBS = 50;

export interface WorkerOptions {
  readonly version: string;
  readonly instance: string;
  /** `thread` notices a hanging main loop; `inline` obeys the context's clock. */
  readonly heartbeat: "thread" | "inline";
  /** A job ignored its timeout: the worker has stopped, and only a fresh process gets rid of the job. */
  onStuck?(): void;
}

export type WorkerMode = "idle" | "running" | "stopping" | "stopped";

/**
 * Takes jobs and runs them. Redis is authoritative: what this process knows can be forgotten at any moment.
 *
 * Modes: idle -> `start` registers and syncs the schedule -> running -> `stop` -> stopping (takes nothing more, running jobs
 * are asked to end) -> stopped (nothing held, not registered).
 *
 * An entry's life here: taken (its number is the claim) -> waits in hand for a slot, or goes back after a second -> runs ->
 * finished, retried later, failed, or bounced. A crash at any point leaves it in this worker's running hash; the worker
 * falls silent, another one buries it after a minute, and the entry is back at the front of the queue. A worker that was
 * buried by mistake learns it from its next heartbeat or take: it aborts its jobs, and its late answers find the claims
 * gone; then it registers again under a new uid.
 */
export class Worker {
  readonly scheduler: Scheduler;
  readonly metrics: JobMetrics;
  readonly #ctx: Context;
  readonly #jobs: JobQueue;
  readonly #options: WorkerOptions;
  readonly #settler: Settler;
  readonly #admission: Admission;
  readonly #execution: Execution;
  readonly #slots: Slots;
  readonly #held = new Map<number, Held>();
  readonly #stopping = new AbortController();
  readonly #categories: readonly (1 | 2)[];
  #mode: WorkerMode = "idle";
  #uid = "";
  #nextNumber = 1;
  #unknownBefore = new Set<number>();
  #alone: Held | undefined;
  #stuck = false;
  #heartbeat: Heartbeat | undefined;
  #waiter: Redis | undefined;
  #wake: (() => void) | undefined;
  #dead: Promise<void> | undefined;
  #timers: (() => void)[] = [];
  #takeLoop: Promise<void> | undefined;

  constructor(ctx: Context, jobs: JobQueue, options: WorkerOptions) {
    this.#ctx = ctx;
    this.#jobs = jobs;
    this.#options = options;
    this.metrics = new JobMetrics(ctx.metrics);
    this.scheduler = new Scheduler(ctx, jobs.recurring, this.metrics);
    this.#settler = new Settler(ctx);
    this.#categories = ctx.config.get(jobSettings.categories);
    this.#admission = new Admission(ctx, this.#settler, this.metrics, this.#categories, () => this.#slots.heavyFree);
    this.#execution = {
      ctx,
      jobs,
      settler: this.#settler,
      metrics: this.metrics,
      contextOf: runContexts(ctx, () => this.#mode !== "running"),
      skippedSince: new Map(),
      interrupted: [],
      stopping: () => this.#mode !== "running",
    };
    this.#slots = new Slots(
      {
        concurrency: ctx.config.get(jobSettings.concurrency),
        heavy: ctx.config.get(jobSettings.heavyConcurrency),
        recurring: ctx.config.get(jobSettings.recurringConcurrency),
      },
      ctx.clock.monotonic(),
    );
  }

  get mode(): WorkerMode {
    return this.#mode;
  }

  get uid(): string {
    return this.#uid;
  }

  get active(): number {
    return this.#slots.active;
  }

  async start(): Promise<void> {
    await this.#ctx.redis.ready();
    await this.#register();
    await this.scheduler.sync();
    this.#mode = "running";
    this.scheduler.start();
    this.#repeat(SWEEP_SECONDS, () => this.#sweep());
    this.#repeat(REAP_SECONDS, async () => {
      await reapSilentWorkers(this.#ctx, this.#ctx.config.get(jobSettings.deadAfter), this.metrics);
    });
    this.#repeat(RECONCILE_SECONDS, () => this.#reconcile());
    this.#repeat(OUTBOX_SECONDS, async () => {
      await this.#jobs.outbox.relayAll();
    });
    if (this.#options.heartbeat === "thread") this.#repeat(CLOCK_CHECK_SECONDS, () => this.#checkClock());
    this.#takeLoop = this.#takeUntilStopped();
  }

  /**
   * Ends gracefully: nothing more is taken, held locks run out soon, running jobs are asked to stop and get the grace
   * period; what is then unfinished goes back to the front of the queue. `now` skips the wait.
   */
  async stop(now?: AbortSignal): Promise<void> {
    if (this.#mode === "stopping" || this.#mode === "stopped") return;
    this.#mode = "stopping";
    this.#stopping.abort();
    this.#wakeUp();
    this.#waiter?.disconnect();
    for (const stopTimer of this.#timers) stopTimer();
    await Promise.all([this.scheduler.stop(), this.#ctx.locks.shutdown(), this.#takeLoop]);
    this.#slots.drain();
    await this.#orLeave(this.#giveBack([...this.#held.values()].filter(({ startedAt }) => startedAt === undefined)));
    for (const held of this.#held.values()) abortHeld(held, "the worker is shutting down");
    await this.#untilIdle(this.#ctx.config.get(jobSettings.shutdownGrace), now);
    await this.#settler.close();
    const unfinished = [...this.#execution.interrupted, ...[...this.#held.values()].filter(({ settled }) => !settled)];
    for (const held of unfinished) this.#forget(held);
    await this.#orLeave(this.#settler.bounce(unfinished, "front"));
    await this.#heartbeat?.stop();
    await this.#orLeave(this.#unregister());
    this.#mode = "stopped";
  }

  /** Redis may be away when the process must end: what cannot be told to it, others find when they bury this worker. */
  async #orLeave(telling: Promise<void>): Promise<void> {
    try {
      await telling;
    } catch (error) {
      this.#ctx.log.warn({ err: error, worker: this.#uid }, "Redis is away; what this worker held is left to others");
    }
  }

  async #register(): Promise<void> {
    const { clock, config, redis, hostname } = this.#ctx;
    this.#uid = newUid("wrk");
    const now = clock.now();
    const worker = jobKeys.worker({ worker_uid: this.#uid });
    await redis.run(
      scripts.register,
      [jobKeys.workers(), worker],
      [
        this.#uid,
        now,
        ...jobKeys.worker.codec.encode({
          host: hostname,
          pid: process.pid,
          instance: this.#options.instance,
          version: this.#options.version,
          categories: this.#categories.join(","),
          concurrency: config.get(jobSettings.concurrency),
          started_at: now,
          running: [],
        }),
      ],
    );
    const beat = this.#options.heartbeat === "thread" ? threadHeartbeat : inlineHeartbeat;
    const workerUid = this.#uid;
    this.#heartbeat = beat({
      ctx: this.#ctx,
      workerUid,
      running: () => this.#runningList(),
      // If Redis is away again, the next take finds this worker unknown and starts over.
      declaredDead: () => void this.#declaredDead(workerUid).catch(() => {}),
    });
  }

  async #unregister(): Promise<void> {
    const parameters = { worker_uid: this.#uid };
    const keys: [string, string, string] = [jobKeys.workers(), jobKeys.worker(parameters), jobKeys.running(parameters)];
    if ((await this.#ctx.redis.run(scripts.unregister, keys, [this.#uid])) === 1) return;
    // A take whose reply never came left entries that this process does not know.
    const unknown = await this.#ctx.redis.commands.hkeys(this.#ctx.redis.topology.key(keys[2]));
    await this.#settler.putBackUnknown(this.#uid, unknown.map(Number));
    await this.#ctx.redis.run(scripts.unregister, keys, [this.#uid]);
  }

  /** Others believe this worker is dead: its jobs are theirs now. */
  #declaredDead(uid: string): Promise<void> {
    if (uid !== this.#uid || this.#mode !== "running") return Promise.resolve();
    this.#dead ??= (async () => {
      this.#ctx.alerts.warning(
        "worker:declared_dead",
        `worker ${uid} was declared dead while it lived; it starts over`,
      );
      await this.#heartbeat?.stop();
      this.#slots.drain();
      for (const held of this.#held.values()) {
        held.settled = true;
        abortHeld(held, "this worker was declared dead; the job runs elsewhere");
      }
      this.#held.clear();
      // One that waits for the others to end must never start here; one that runs still keeps the worker to itself.
      if (this.#alone?.startedAt === undefined) this.#alone = undefined;
      await this.#register();
      await this.scheduler.syncIfLost();
    })().finally(() => {
      this.#dead = undefined;
    });
    return this.#dead;
  }

  async #takeUntilStopped(): Promise<void> {
    let failures = 0;
    while (this.#mode === "running") {
      try {
        await this.#dead;
        if (this.#alone || this.#stuck || !(await this.#takeOnce())) await this.#waitForChange();
        failures = 0;
      } catch (error) {
        if (this.#mode !== "running") return;
        const wait = BACKOFF_SECONDS[Math.min(failures++, BACKOFF_SECONDS.length - 1)]!;
        this.#ctx.log.warn({ err: error, wait }, "taking jobs failed; it is tried again");
        await this.#ctx.clock.sleep(wait, this.#stopping.signal);
      }
    }
  }

  /** Takes what fits and starts it; false when it is better to wait than to take again. */
  async #takeOnce(): Promise<boolean> {
    const room = this.#slots.room();
    if (room.plain + room.recurring === 0) return false;
    const now = this.#ctx.clock.monotonic();
    this.#slots.noteTake(now);
    const workerUid = this.#uid;
    const first = this.#nextNumber;
    this.#nextNumber += room.plain + room.recurring;
    const parameters = { worker_uid: workerUid };
    const queues = this.#queues();
    const entries = await this.#ctx.redis.run(
      scripts.take,
      [jobKeys.worker(parameters), jobKeys.running(parameters), ...queues.map(({ key }) => key)],
      [first, room.plain, room.recurring, ...queues.map(({ limit }) => limit)],
    );
    if (entries === undefined) {
      await this.#declaredDead(workerUid);
      return true;
    }
    if (entries.length === 0) return false;
    await this.#admit(entries, workerUid, first, now);
    // A stop that came meanwhile gives back what never started.
    if (this.#mode === "running") this.#pump();
    // Fewer than there was room for: the queues are empty now, and waiting for a push is cheaper than asking again.
    return entries.length >= room.plain;
  }

  /** In the order of preference; the queue of costly jobs gives no more than there are slots for them. */
  #queues(): { key: string; limit: number }[] {
    const byCategory = this.#categories.map((category) => ({
      key: jobKeys.hotByCategory({ category }),
      limit: category === 1 ? this.#slots.heavyFree : MAX_PREFETCH,
    }));
    return [...byCategory, { key: jobKeys.hot(), limit: MAX_PREFETCH }];
  }

  async #admit(entries: readonly string[], workerUid: string, first: number, takenAt: number): Promise<void> {
    for (const held of await this.#admission.admit(entries, workerUid, first, takenAt)) {
      this.#held.set(held.number, held);
      // One more death over this entry makes it poison. It runs alone, so that no innocent one dies with it.
      const poisonous = (held.job.deliveries ?? 0) === held.runner.maxDeliveries - 1;
      if (poisonous && !this.#alone) this.#alone = held;
      else this.#slots.add(held);
    }
  }

  /** Starts whatever a slot is free for. */
  #pump(): void {
    if (this.#alone) {
      void this.#giveBack(this.#slots.drain()).catch(() => {});
      if (this.#slots.active > 0) return;
      this.#slots.add(this.#alone);
    }
    for (let next = this.#slots.next(); next; next = this.#slots.next()) void this.#run(next.held, next.kind);
  }

  async #run(held: readonly Held[], kind: SlotKind): Promise<void> {
    try {
      await execute(this.#execution, held);
    } catch (error) {
      // Settling failed, most likely because Redis is away. The entry stays claimed; reconciling gives it back.
      this.#ctx.log.warn({ err: error, job: held[0]!.job.name }, "a job's end could not be recorded");
    }
    for (const one of held) this.#forget(one);
    this.#slots.ended(held, kind);
    if (this.#alone === held[0]) this.#alone = undefined;
    if (this.#mode === "running") this.#pump();
    this.#wakeUp();
  }

  /** Waits until a slot frees up or, when there is room, until something is pushed. */
  async #waitForChange(): Promise<void> {
    const { plain, recurring } = this.#slots.room();
    const changed = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    if (this.#alone || this.#stuck || plain + recurring === 0) return changed;
    if (plain === 0) {
      // Whatever else waits would end a blocking wait at once; only recurring entries matter now, and these come seldom.
      const enough = new AbortController();
      void changed.then(() => enough.abort());
      await this.#ctx.clock.sleep(BUSY_LOOK_SECONDS, AbortSignal.any([enough.signal, this.#stopping.signal]));
      return;
    }
    this.#waiter ??= this.#ctx.redis.duplicate({ connectionName: "carillon-waiter" });
    this.#waiter.on("error", () => {}).setMaxListeners(0);
    const hot = this.#ctx.redis.topology.key(jobKeys.hot());
    // Moves the head onto itself: wakes on a push and changes nothing.
    const pushed = this.#waiter.blmove(hot, hot, "LEFT", "LEFT", PUSH_WAIT_SECONDS);
    await Promise.race([changed, pushed]);
    if (this.#mode === "running") await pushed;
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  #forget(held: Held): void {
    held.settled = true;
    if (this.#held.get(held.number) === held) this.#held.delete(held.number);
  }

  async #giveBack(held: readonly Held[]): Promise<void> {
    for (const one of held) this.#forget(one);
    await this.#settler.putBack(held);
  }

  /** Once a second: entries that wait too long go back, runs that take too long are told to end. */
  async #sweep(): Promise<void> {
    const now = this.#ctx.clock.monotonic();
    await this.#giveBack(this.#slots.drain(now - UNSTARTED_SECONDS));
    for (const held of this.#held.values()) {
      if (held.startedAt === undefined || held.settled) continue;
      const over = now - held.startedAt - held.runner.timeout;
      if (over >= 0 && !held.timedOut) {
        held.timedOut = true;
        abortHeld(held, `timed out after ${held.runner.timeout} s`);
      } else if (over >= TIMEOUT_GRACE_SECONDS) await this.#giveUpOn(held);
    }
    if (this.#stuck && this.#held.size === 0) this.#options.onStuck?.();
  }

  /** A run that ignores its signal cannot be ended from here: others get its entry, and this process must make way. */
  async #giveUpOn(held: Held): Promise<void> {
    this.#forget(held);
    this.#stuck = true;
    this.#ctx.alerts.warning("worker:stuck", `${held.job.name} ignores its timeout; this worker stops and restarts`, {
      urgent: true,
    });
    await settleTimedOut(this.#execution, held);
  }

  /** Entries that Redis says are ours and that memory does not know, twice in a row: the reply to their take was lost. */
  async #reconcile(): Promise<void> {
    const { commands, topology } = this.#ctx.redis;
    const workerUid = this.#uid;
    const numbers = await commands.hkeys(topology.key(jobKeys.running({ worker_uid: workerUid })));
    const unknown = numbers.map(Number).filter((number) => !this.#held.has(number));
    const lost = unknown.filter((number) => this.#unknownBefore.has(number));
    this.#unknownBefore = new Set(unknown);
    await this.#settler.putBackUnknown(workerUid, lost);
  }

  async #checkClock(): Promise<void> {
    const [seconds, micros] = await this.#ctx.redis.commands.time();
    const skew = this.#ctx.clock.now() - (Number(seconds) + Number(micros) / 1e6);
    if (Math.abs(skew) > CLOCK_SKEW_SECONDS)
      this.#ctx.alerts.warning(
        "worker:clock_skew",
        `the clock of ${this.#ctx.hostname} is off by ${skew.toFixed(1)} s`,
      );
  }

  #runningList(): string {
    const running = [...this.#held.values()].filter(({ startedAt }) => startedAt !== undefined).slice(0, LISTED_JOBS);
    const offset = this.#ctx.clock.now() - this.#ctx.clock.monotonic();
    return JSON.stringify(running.map(({ job, startedAt }) => ({ name: job.name, since: startedAt! + offset })));
  }

  async #untilIdle(seconds: number, now?: AbortSignal): Promise<void> {
    const idle = new AbortController();
    let over = false;
    const deadline = this.#ctx.clock.sleep(seconds, AbortSignal.any([idle.signal, ...(now ? [now] : [])]));
    void deadline.then(() => {
      over = true;
      this.#wakeUp();
    });
    while (this.#slots.active > 0 && !over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    idle.abort();
  }

  #repeat(seconds: number, turn: () => Promise<void>): void {
    this.#timers.push(
      this.#ctx.clock.every(seconds, async () => {
        try {
          await turn();
        } catch (error) {
          this.#ctx.log.warn({ err: error }, "a regular duty of the worker failed; it is repeated");
        }
      }),
    );
  }
}
