import { isUtf8 } from "node:buffer";
import { z } from "zod";
import type { Context } from "./context.ts";
import { type JobEntry, parseEntry } from "./entry.ts";
import { type Claim, Held } from "./held.ts";
import type { JobMetrics } from "./job-metrics.ts";
import { jobKeys } from "./keys.ts";
import type { Category } from "./runner.ts";
import type { Settler } from "./settler.ts";

const DEFER_SECONDS = 30;
/** Ten minutes of deferrals: longer than a rolling update takes to reach every worker. */
const MAX_DEFERRALS = 20;

/** Decides at the door what becomes of each entry that was taken; only what can run here comes in. */
export class Admission {
  readonly #ctx: Context;
  readonly #settler: Settler;
  readonly #metrics: JobMetrics;
  readonly #categories: readonly Category[];
  readonly #heavyFree: () => number;

  constructor(
    ctx: Context,
    settler: Settler,
    metrics: JobMetrics,
    categories: readonly Category[],
    heavyFree: () => number,
  ) {
    this.#ctx = ctx;
    this.#settler = settler;
    this.#metrics = metrics;
    this.#categories = categories;
    this.#heavyFree = heavyFree;
  }

  /** Entries are numbered upwards from `first`. Those that cannot run here are settled before this resolves. */
  async admit(raws: readonly string[], workerUid: string, first: number, takenAt: number): Promise<readonly Held[]> {
    const admitted: Held[] = [];
    const malformed: (Claim & { raw: string | Buffer; reason: string })[] = [];
    const refiled = new Map<Category, Claim[]>();
    const settling: Promise<void>[] = [];
    let heavyFree = this.#heavyFree();
    for (const [index, raw] of raws.entries()) {
      const claim = { workerUid, number: first + index };
      // Bytes that are not text were replaced on the way here; what is set aside must be the bytes themselves.
      const bytes = raw.includes("\uFFFD") ? await this.#bytesOf(claim) : undefined;
      if (bytes && !isUtf8(bytes)) {
        malformed.push({ ...claim, raw: bytes, reason: "not UTF-8" });
        continue;
      }
      const parsed = parseEntry(raw);
      if (!parsed.ok) {
        malformed.push({ ...claim, raw, reason: parsed.error });
        continue;
      }
      const { job } = parsed;
      const runner = this.#ctx.jobs.runners.get(job.name);
      if (!runner) {
        settling.push(this.#defer(claim, job, raw));
        continue;
      }
      const { category } = runner;
      if ((category === 1 && heavyFree === 0) || !this.#categories.includes(category)) {
        refiled.set(category, [...(refiled.get(category) ?? []), claim]);
        continue;
      }
      const kwargs = runner.kwargs.safeParse(job.kwargs);
      if (!kwargs.success) {
        const failed = { ...claim, raw, job };
        settling.push(this.#settler.fail(failed, "invalid_kwargs", z.prettifyError(kwargs.error)));
        continue;
      }
      if (category === 1) heavyFree--;
      admitted.push(new Held(claim, job, runner, kwargs.data, takenAt));
    }
    if (malformed.length > 0) settling.push(this.#settler.quarantine(malformed));
    for (const [category, claims] of refiled) settling.push(this.#settler.refile(category, claims));
    if (settling.length > 0) await Promise.all(settling);
    return admitted;
  }

  #bytesOf({ workerUid, number }: Claim): Promise<Buffer | null> {
    const { commands, topology } = this.#ctx.redis;
    return commands.hgetBuffer(topology.key(jobKeys.running({ worker_uid: workerUid })), String(number));
  }

  /** An unknown name may belong to a newer version that is still rolling out: it waits for a worker that knows it. */
  async #defer(claim: Claim, job: JobEntry, raw: string): Promise<void> {
    const deferrals = (job.deferrals ?? 0) + 1;
    this.#metrics.count("unknown", "deferred");
    if (deferrals > MAX_DEFERRALS) {
      const failed = { ...claim, raw, job };
      return this.#settler.fail(failed, "unknown_runner", `no runner is named ${job.name}`);
    }
    await this.#settler.delay({ ...claim, job }, { deferrals }, DEFER_SECONDS);
  }
}
