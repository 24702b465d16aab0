import type { JobContext } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { type Fence, type Fenced, type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import { type Claim, type Entry, runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { Pace, sendThroughWindow } from "../../mechanisms/settling-window/index.ts";
import type { EmailOutcome } from "../../providers/email.ts";
import { errorText } from "../../providers/failure.ts";
import { type SuppressedAmong, suppressAfterFailure, suppressedAmong } from "../contacts/service.ts";
import { type Unwritten, writeMail } from "./compose.ts";
import { laneOf, nudgeByName } from "./enqueue.ts";
import type { Attempt } from "./entries.ts";
import { Gate } from "./gate.ts";
import { keys } from "./keys.ts";
import { type Lane, lanes } from "./line.ts";
import { settings } from "./settings.ts";
import { type SendCount, type Sent, settleSent } from "./settle-send.ts";

/** Seconds of a run, as its runner declares them. */
export const BUDGET = 50;
/** What a provider that reports receipts is asked for while it does not say how much it takes. */
const CAUTIOUS_RATE = 14;

/** What became of a mail, or that it was not given to the provider. */
type Answer = EmailOutcome | Unwritten | "held";

/** Sends what waits. Answers why it stopped. */
export async function sendMails(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<SendCount>(ctx, keys.sendReport);
  const run = new SendRun(ctx, lock.fence, await paceFor(ctx));
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => run.claim(first),
    handle: (batch) => run.handle(batch),
  });
  await report.finish({ stopReason, counts: run.counts });
  return stopReason;
}

class SendRun {
  readonly counts: Record<SendCount, number> = {
    attempted: 0,
    templated: 0,
    accepted: 0,
    failed_permanently: 0,
    failed_transiently: 0,
  };
  readonly #ctx: JobContext;
  readonly #fence: Fence;
  readonly #gate: Gate;
  readonly #pace: Pace;
  #lane: Lane = "urgent";
  #ended: StopReason | undefined;

  constructor(ctx: JobContext, fence: Fence, pace: Pace) {
    this.#ctx = ctx;
    this.#fence = fence;
    this.#pace = pace;
    this.#gate = new Gate(ctx.clock, (seconds) => ctx.sleep(seconds), BUDGET);
  }

  /** The next batch: urgent mails while there are any. Each batch comes from one lane. */
  async claim(first: boolean): Promise<Claim | Fenced> {
    const size = this.#ctx.config.get(settings.claimSize);
    for (const lane of ["urgent", "ordinary"] as const) {
      this.#lane = lane;
      const claimed = await lanes[lane].claimBatch(this.#ctx, this.#fence, first, size);
      if (!claimed.ok || claimed.size > 0) return claimed;
    }
    return { ok: true, size: 0, recovered: false };
  }

  async handle(batch: Claim): Promise<StopReason | undefined> {
    const ctx = this.#ctx;
    const entries = await lanes[this.#lane].read(ctx, 0, batch.size);
    // What a dead run left came from one lane too, and its mails tell which.
    if (batch.recovered && entries[0]) this.#lane = laneOf(entries[0].value);
    const suppressed = await this.#suppressed(entries);
    if (suppressed) await this.#send(entries, suppressed);
    // Only now: requests that were under way had to end with the client that they began with.
    if (this.#ended === "credentials") await ctx.providers.email.reset();
    // Nothing of what is left was given to the provider: it is no dead run's, and goes back in order.
    if (this.#ended) unlessFenced(await lanes[this.#lane].putBack(ctx, this.#fence));
    return this.#ended;
  }

  /** Asked at the last moment, so that whoever left is heard for queued mails too. Without an answer nothing is sent. */
  async #suppressed(entries: readonly Entry<Attempt>[]): Promise<SuppressedAmong["emails"] | undefined> {
    try {
      const emails = [...new Set(entries.map(({ value }) => value.email))];
      return (await suppressedAmong(this.#ctx, { emails })).emails;
    } catch (error) {
      this.#ctx.alerts.error(error, "mails wait: nobody can say which addresses are suppressed");
      this.#ended = "time_exhausted";
      return undefined;
    }
  }

  async #send(entries: readonly Entry<Attempt>[], suppressed: SuppressedAmong["emails"]): Promise<void> {
    const ctx = this.#ctx;
    const { unsent } = await sendThroughWindow<Entry<Attempt>, Answer>(ctx, {
      items: entries,
      window: ctx.config.get(settings.window),
      groupSize: 1,
      perSecond: this.#pace,
      send: async ([entry]) => {
        const written = await writeMail(ctx, entry!.value, suppressed);
        return [written.ok ? await this.#deliver(written.message) : written];
      },
      settle: async (pairs) => {
        const sent = pairs.flatMap(({ item, answer }) => (answer === "held" ? [] : [{ entry: item, outcome: answer }]));
        for (const count of await settleSent(ctx, sent)) this.counts[count] += 1;
        // Their receipts are in the queue already.
        if (sent.some(({ outcome }) => outcome.ok && !outcome.hasReceipts))
          nudgeByName(ctx, "runners.emails.receipt_reconciliation");
        await this.#suppressUnreachable(sent);
      },
      stop: () => this.#ended !== undefined || ctx.shuttingDown() || ctx.budget.exhausted(),
    });
    if (unsent.length > 0) this.#ended ??= ctx.shuttingDown() ? "signal" : "time_exhausted";
  }

  /** One request, at the pace that the provider's state allows; `held` when the run must end without it. */
  async #deliver(message: Parameters<JobContext["providers"]["email"]["send"]>[0]): Promise<Answer> {
    const ctx = this.#ctx;
    if (this.#ended) return "held";
    const outcome = await this.#gate.pass(
      async () => (this.#ended ? "held" : ctx.providers.email.send(message)),
      (answer) => {
        if (answer === "held") return "neither";
        if (answer.ok) return "well";
        return answer.backoff && !answer.credentials ? "badly" : "neither";
      },
    );
    if (outcome === undefined) {
      this.#ended ??= ctx.shuttingDown() ? "signal" : "time_exhausted";
      return "held";
    }
    if (outcome === "held" || outcome.ok) return outcome;
    // The chain of providers has told people already.
    if (outcome.credentials) {
      this.#ended = "credentials";
      return "held";
    }
    if (outcome.accountStopped)
      ctx.alerts.warning("emails:account_stopped", `the provider stopped our account: ${outcome.extra}`, {
        urgent: true,
      });
    return outcome;
  }

  /** A mailbox that a server says does not exist is suppressed as after a bounce; a failure to do so is told, not more. */
  async #suppressUnreachable(sent: readonly Sent[]): Promise<void> {
    const gone = sent.filter(({ outcome }) => !outcome.ok && "unreachable" in outcome && outcome.unreachable);
    if (gone.length === 0) return;
    try {
      await suppressAfterFailure(
        this.#ctx,
        gone.map(({ entry: { value } }) => ({
          type: "Bounce",
          email: value.email,
          extra: "Permanent/NoEmail",
          messageId: value.uid,
        })),
      );
    } catch (error) {
      this.#ctx.alerts.error(error, "a mailbox that does not exist could not be suppressed");
    }
  }
}

const paces = new WeakMap<Config, { readonly rate: number; readonly pace: Pace }>();

/** The pace is kept from run to run, so that two runs within a second share its allowance. */
async function paceFor(ctx: JobContext): Promise<Pace> {
  const own = ctx.config.get(settings.maxPerSecond);
  let theirs = ctx.providers.email.hasReceipts ? CAUTIOUS_RATE : own;
  try {
    const quota = await ctx.providers.email.quota();
    if (quota) theirs = quota.maxPerSecond;
  } catch (error) {
    ctx.log.warn({ error: errorText(error) }, "the provider of mails does not say how much it takes");
  }
  const rate = Math.max(Math.min(own, theirs), 1);
  const held = paces.get(ctx.config);
  if (held?.rate === rate) return held.pace;
  const pace = new Pace(ctx.clock, rate);
  paces.set(ctx.config, { rate, pace });
  return pace;
}
