import { defineScript } from "../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

/** What a look at the schedule found. */
export interface TakenRecurring {
  readonly digests: readonly string[];
  readonly due: readonly number[];
  /** When the next of the rest is due. */
  readonly nextDue: number | undefined;
}

export const enqueue = defineScript({
  name: "jobs.enqueue",
  file: file("enqueue"),
  keys: ["hot"],
  args: ["max_length", "...entries"],
  idempotent: false,
  reply: (length: number) => length,
});

export const enqueueWithProgress = defineScript({
  name: "jobs.enqueue_with_progress",
  file: file("enqueue_with_progress"),
  keys: ["hot", "delayed", "events", "count"],
  args: ["entry", "due", "channel", "event", "ttl_ms", "max_length"],
  idempotent: false,
  reply: (count: number) => count,
});

export const register = defineScript({
  name: "jobs.register",
  file: file("register"),
  keys: ["workers", "worker"],
  args: ["worker_uid", "now", "...fields"],
  idempotent: true,
  reply: (count: number) => count,
});

export const unregister = defineScript({
  name: "jobs.unregister",
  file: file("unregister"),
  keys: ["workers", "worker", "running"],
  args: ["worker_uid"],
  idempotent: true,
  reply: (count: number) => count,
});

export const beat = defineScript({
  name: "jobs.beat",
  file: file("beat"),
  keys: ["workers", "worker"],
  args: ["worker_uid", "now", "running"],
  idempotent: true,
  reply: (count: number) => count,
});

export const take = defineScript({
  name: "jobs.take",
  file: file("take"),
  keys: ["worker", "running", "...queues"],
  args: ["first_number", "max_plain", "max_recurring", "...limits"],
  idempotent: false,
  reply: (raw: -1 | string[]) => (raw === -1 ? undefined : raw),
});

export const refile = defineScript({
  name: "jobs.refile",
  file: file("refile"),
  keys: ["running", "category"],
  args: ["...numbers"],
  idempotent: true,
  reply: (count: number) => count,
});

export const putBack = defineScript({
  name: "jobs.put_back",
  file: file("put_back"),
  keys: ["running", "hot"],
  args: ["...numbers"],
  idempotent: true,
  reply: (count: number) => count,
});

export const begin = defineScript({
  name: "jobs.begin",
  file: file("begin"),
  keys: ["queued"],
  args: ["...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const finish = defineScript({
  name: "jobs.finish",
  file: file("finish"),
  keys: ["running"],
  args: ["...numbers"],
  idempotent: true,
  reply: (count: number) => count,
});

export const requeue = defineScript({
  name: "jobs.requeue",
  file: file("requeue"),
  keys: ["running", "hot", "queued"],
  args: ["side", "now", "...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const delay = defineScript({
  name: "jobs.delay",
  file: file("delay"),
  keys: ["running", "delayed", "queued"],
  args: ["...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const fail = defineScript({
  name: "jobs.fail",
  file: file("fail"),
  keys: ["running", "failed", "queued"],
  args: ["...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const quarantine = defineScript({
  name: "jobs.quarantine",
  file: file("quarantine"),
  keys: ["running", "quarantine"],
  args: ["...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const promote = defineScript({
  name: "jobs.promote",
  file: file("promote"),
  keys: ["delayed", "hot"],
  args: ["now", "max_items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const buryWorker = defineScript({
  name: "jobs.bury_worker",
  file: file("bury_worker"),
  keys: ["workers", "worker", "running", "hot", "failed", "queued"],
  args: ["worker_uid", "dead_before", "now", "...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const nudge = defineScript({
  name: "jobs.nudge",
  file: file("nudge"),
  keys: ["queued", "hot"],
  args: ["digest", "now", "entry"],
  idempotent: true,
  reply: (count: number) => count,
});

export const syncRecurring = defineScript({
  name: "jobs.sync_recurring",
  file: file("sync_recurring"),
  keys: ["recurring", "purgatory", "queued", "hash"],
  args: ["new_hash", "now", "...jobs"],
  idempotent: true,
  reply: (count: number) => count,
});

export const takeRecurring = defineScript({
  name: "jobs.take_recurring",
  file: file("take_recurring"),
  keys: ["recurring", "purgatory", "hash"],
  args: ["own_hash", "now", "max_items"],
  idempotent: true,
  reply: (raw: -1 | string[]): TakenRecurring | undefined => {
    if (raw === -1) return undefined;
    const [next = "", ...flat] = raw;
    const digests = flat.filter((_, index) => index % 2 === 0);
    return {
      nextDue: next === "" ? undefined : Number(next),
      digests,
      due: flat.filter((_, index) => index % 2 === 1).map(Number),
    };
  },
});

export const dispatchRecurring = defineScript({
  name: "jobs.dispatch_recurring",
  file: file("dispatch_recurring"),
  keys: ["recurring", "purgatory", "queued", "hash", "hot"],
  args: ["own_hash", "now", "...items"],
  idempotent: true,
  reply: (raw: -1 | number[]) => (raw === -1 ? undefined : raw),
});

export const pushProgress = defineScript({
  name: "jobs.push_progress",
  file: file("push_progress"),
  keys: ["events", "count"],
  args: ["event", "channel", "ttl_ms", "done"],
  idempotent: false,
  reply: ([seq, subscribers]: [number, number]) => ({ seq, subscribers }),
});

export const pushHeldProgress = defineScript({
  name: "jobs.push_held_progress",
  file: file("push_held_progress"),
  keys: ["running", "events", "count"],
  args: ["number", "event", "channel", "ttl_ms"],
  idempotent: false,
  reply: (seq: number) => seq,
});

export const relay = defineScript({
  name: "jobs.relay",
  file: file("relay"),
  keys: ["hot", "delayed", "...flags"],
  args: ["flag_ms", "...items"],
  idempotent: true,
  reply: (count: number) => count,
});

export const forgetRelayed = defineScript({
  name: "jobs.forget_relayed",
  file: file("forget_relayed"),
  keys: ["...flags"],
  args: ["flag_ms"],
  idempotent: true,
  reply: (count: number) => count,
});

export const retryFailed = defineScript({
  name: "jobs.retry_failed",
  file: file("retry_failed"),
  keys: ["failed", "hot"],
  args: ["...items"],
  idempotent: true,
  reply: (count: number) => count,
});
