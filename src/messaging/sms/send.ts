import type { JobContext } from "../../jobs/context.ts";
import { type Fenced, type Lock, lockErrors, unlessFenced } from "../../mechanisms/lock/index.ts";
import { type Entry, runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { Pace, type Pair, sendThroughWindow } from "../../mechanisms/settling-window/index.ts";
import { statusCallbackUrl } from "./addresses.ts";
import { BackOff } from "./back-off.ts";
import { type SmsEntry, smsEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { sendQueue } from "./line.ts";
import { type Delivery, LookUp } from "./look-up.ts";
import { Refusals } from "./refusals.ts";
import { putBackDoubtful } from "./scripts.ts";
import { settings } from "./settings.ts";
import { type SendCount, settleSent } from "./settle-send.ts";

/** Seconds of a run, as its runner declares them. */
export const BUDGET = 50;
const BATCH = 500;
/** Between two batches, while silent messages wait for the provider too. */
const MAKE_WAY = 0.2;

/** What the provider said, or that the text was not given to it. */
type Answer = Delivery | "held";

/** What the purgatory holds; `recovered`: a run that died took it. */
type Batch = { readonly size: number; readonly recovered: boolean };

/** By process and provider: two runs within one second share one allowance. */
const paces = new WeakMap<object, { readonly perSecond: number; readonly pace: Pace }>();

function paceOf({ config, clock, providers }: Pick<JobContext, "config" | "clock" | "providers">): Pace | undefined {
  const perSecond = config.get(settings.maxPerSecond);
  if (perSecond <= 0) return undefined;
  const known = paces.get(providers.sms);
  if (known?.perSecond === perSecond) return known.pace;
  const pace = new Pace(clock, perSecond);
  paces.set(providers.sms, { perSecond, pace });
  return pace;
}

/** Sends what waits. Answers why it stopped. */
export async function sendTexts(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<SendCount | "attempted">(ctx, keys.sendReport);
  const run = new SendRun(ctx, lock);
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => sendQueue.claimBatch(ctx, lock.fence, first, BATCH),
    handle: (batch) => run.handle(batch),
  });
  await report.finish({ stopReason, counts: run.counts });
  return stopReason;
}

class SendRun {
  readonly counts: Record<SendCount | "attempted", number> = {
    attempted: 0,
    pending: 0,
    succeeded: 0,
    failed_permanently: 0,
    failed_transiently: 0,
  };
  readonly #ctx: JobContext;
  readonly #lock: Lock;
  readonly #backOff: BackOff;
  readonly #lookUp: LookUp;
  #batches = 0;
  #ended: StopReason | undefined;
  #providerLock: Lock | undefined;

  constructor(ctx: JobContext, lock: Lock) {
    this.#ctx = ctx;
    this.#lock = lock;
    this.#backOff = new BackOff(ctx.clock, (seconds) => ctx.sleep(seconds), BUDGET);
    this.#lookUp = new LookUp(ctx);
  }

  async handle(batch: Batch): Promise<StopReason | undefined> {
    const ctx = this.#ctx;
    if (this.#batches++ > 0 && (await ctx.redis.commands.llen(ctx.redis.topology.key(keys.recovery()))) > 0)
      await ctx.sleep(MAKE_WAY);
    try {
      const options = { kind: "owner", wait: "spin", timeout: BUDGET, signal: ctx.signal } as const;
      await ctx.locks.withLock(keys.providerLock(), options, (lock) => {
        this.#providerLock = lock;
        return this.#send(batch);
      });
    } catch (error) {
      if (!lockErrors.lock_held.matches(error)) throw error;
      this.#end();
    }
    if (this.#lock.signal.aborted) return "signal";
    if (this.#ended) unlessFenced(await this.#putBack(batch));
    return this.#ended;
  }

  /**
   * This run gave nothing of what is left to the provider, so it goes back in order. A dead run may have, which only its
   * purgatory says; so what it left takes the doubt along, and is looked up by whoever takes it next.
   */
  async #putBack({ size, recovered }: Batch): Promise<{ readonly ok: true } | Fenced> {
    const ctx = this.#ctx;
    const { fence } = this.#lock;
    if (!recovered) return sendQueue.putBack(ctx, fence);
    const left = await sendQueue.read(ctx, 0, size);
    const items = left.flatMap(({ raw, value }) => [
      raw,
      smsEntry.encode({ ...value, unanswered_since: value.unanswered_since ?? value.last_queued_at }),
    ]);
    return ctx.redis.run(putBackDoubtful, [keys.toSend(), keys.sendPurgatory(), fence.key], [fence.lockId, ...items]);
  }

  async #send(batch: Batch): Promise<void> {
    const ctx = this.#ctx;
    const entries = await sendQueue.read(ctx, 0, batch.size);
    const refusals = new Refusals(
      ctx,
      entries.map(({ value }) => value.phone_number),
    );
    await refusals.refresh().catch(async (error) => {
      await this.#putBack(batch);
      throw error;
    });
    const { unsent } = await sendThroughWindow<Entry<SmsEntry>, Answer>(ctx, {
      items: entries,
      window: ctx.config.get(settings.window),
      groupSize: 1,
      perSecond: paceOf(ctx),
      send: async ([entry]) => {
        const { value } = entry!;
        const refusal = refusals.of(value.phone_number);
        if (refusal) return [{ outcome: refusal }];
        const doubtful = batch.recovered || value.unanswered_since !== undefined;
        const deliver = () => this.#deliver(value, doubtful, refusals);
        return [await this.#lookUp.inTurn(value, () => this.#ask(deliver))];
      },
      settle: (pairs) => this.#settle(pairs),
      stop: () => this.#ended !== undefined || this.#lost || ctx.shuttingDown() || ctx.budget.exhausted(),
    });
    if (unsent.length > 0) this.#end();
  }

  async #settle(pairs: readonly Pair<Entry<SmsEntry>, Answer>[]): Promise<void> {
    const sent = pairs.flatMap(({ item, answer }) => (answer === "held" ? [] : [{ entry: item, ...answer }]));
    for (const count of await settleSent(this.#ctx, sent)) {
      this.counts.attempted += 1;
      this.counts[count] += 1;
    }
    this.#lookUp.settled(sent.map(({ sid }) => sid));
  }

  async #deliver(entry: SmsEntry, doubtful: boolean, refusals: Refusals): Promise<Answer> {
    const { providers, config, log } = this.#ctx;
    const found = doubtful ? await this.#lookUp.find(entry) : undefined;
    if (found) return found;
    try {
      await refusals.refresh();
    } catch (error) {
      log.warn({ err: error }, "nobody can say who wants no texts; the rest waits");
      return this.#end();
    }
    const refusal = refusals.of(entry.phone_number);
    if (refusal) return { outcome: refusal };
    if (this.#lost) return this.#end();
    const statusCallback = statusCallbackUrl(config);
    const { provider, ...outcome } = await providers.sms.create({
      to: entry.phone_number,
      body: entry.body,
      statusCallback,
    });
    return { outcome, provider, ...(outcome.ok ? { sid: outcome.resource.sid } : {}) };
  }

  /** Another run may have begun, here or with the provider: from now on nothing is asked of it. */
  get #lost(): boolean {
    return this.#lock.signal.aborted || (this.#providerLock?.signal.aborted ?? false);
  }

  #end(): "held" {
    this.#ended ??= this.#ctx.shuttingDown() ? "signal" : "time_exhausted";
    return "held";
  }

  /** One request, at the pace that the provider's state allows; `held` when the run must end without it. */
  async #ask(request: () => Promise<Answer>): Promise<Answer> {
    if (this.#ended || !(await this.#backOff.ready()) || this.#lost) return this.#end();
    const began = this.#ctx.clock.monotonic();
    const answer = await request();
    if (answer === "held") return answer;
    const { outcome } = answer;
    if (!outcome.ok && outcome.credentials) return this.#end();
    if (outcome.ok) this.#backOff.note(began, "well");
    else if (outcome.backoff) this.#backOff.note(began, "badly");
    return answer;
  }
}
