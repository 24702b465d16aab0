import type { JobContext } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { type Fenced, type Lock, lockErrors, unlessFenced } from "../../mechanisms/lock/index.ts";
import {
  type Claim,
  type Entry,
  runBatches,
  Standing,
  type StopReason,
} from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { Pace, type Refill, sendThroughWindow } from "../../mechanisms/settling-window/index.ts";
import type { EmailOutcome } from "../../providers/email.ts";
import { errorText } from "../../providers/failure.ts";
import type { Carried } from "../../providers/provider-chain.ts";
import { type SuppressedAmong, suppressAfterFailure, suppressedAmong } from "../contacts/service.ts";
import { tellAccountStopped } from "./account-stopped.ts";
import { type Unwritten, writeMail } from "./compose.ts";
import { nudgeByName } from "./enqueue.ts";
import type { Attempt } from "./entries.ts";
import { Gate } from "./gate.ts";
import { keys } from "./keys.ts";
import { type Lane, laneOf, lanes, unreserveMails, urgentRoom } from "./line.ts";
import { areListsPaused, withoutLists } from "./paused-lists.ts";
import { settings } from "./settings.ts";
import { type SendCount, type Sent, settleSent } from "./settle-send.ts";
import { tellAccepted } from "./test-mail.ts";

/** Seconds of a run, as its runner declares them. */
export const BUDGET = 50;
/** What a provider that reports receipts is asked for while it does not say how much it takes. */
const CAUTIOUS_RATE = 14;
/** Seconds between two looks at the urgent lane while other mails are being sent. */
const LOOK_EVERY = 0.05;

/** What became of a mail, or that it was not given to the provider. */
type Answer = Carried<EmailOutcome> | Unwritten | "held";
type Suppressed = SuppressedAmong["emails"] extends ReadonlyMap<string, infer Held> ? Map<string, Held> : never;

/** Mails on their way through the window. */
interface Passage {
  /** Those that this run holds and has not settled. */
  readonly standing: Standing<Entry<Attempt>>;
  readonly suppressed: Suppressed;
}

const NOTHING: readonly never[] = [];

/** Sends what waits. Answers why it stopped. */
export async function sendMails(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<SendCount>(ctx, keys.sendReport);
  const run = new SendRun(ctx, lock, await paceFor(ctx), await areListsPaused(ctx));
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

/**
 * One run of the send job. It takes a batch, urgent mails while there are any, and sends it through a window; ordinary ones
 * are followed by the next while the last are still being settled. Meanwhile it looks at the urgent lane again and again:
 * what came joins the same purgatory and takes the next place in the window, so that a campaign delays a sign-in code by a
 * few mails and not by a batch.
 *
 * A run ends early for a reason that stands in `#ended`; what it had taken and not sent then returns to its lanes. A run
 * that lost its lock touches nothing any more: all that it held is the next holder's.
 */
class SendRun {
  readonly counts: Record<SendCount, number> = {
    attempted: 0,
    templated: 0,
    accepted: 0,
    failed_permanently: 0,
    failed_transiently: 0,
  };
  readonly #ctx: JobContext;
  readonly #lock: Lock;
  readonly #gate: Gate;
  readonly #pace: Pace;
  readonly #listsPaused: boolean;
  #lane: Lane = "urgent";
  #ended: StopReason | undefined;
  /** Urgent mails that came while others were being sent, in order. */
  readonly #hurried: Entry<Attempt>[] = [];
  #claiming: Promise<unknown> = Promise.resolve();
  #watchFailed: { readonly error: unknown } | undefined;

  constructor(ctx: JobContext, lock: Lock, pace: Pace, listsPaused: boolean) {
    this.#listsPaused = listsPaused;
    this.#ctx = ctx;
    this.#lock = lock;
    this.#pace = pace;
    this.#gate = new Gate(ctx.clock, (seconds) => ctx.sleep(seconds), BUDGET);
  }

  /** The next batch: urgent mails while there are any. Ordinary ones leave room for urgent ones that come meanwhile. */
  async claim(first: boolean): Promise<Claim | Fenced> {
    const size = this.#ctx.config.get(settings.claimSize);
    const { fence } = this.#lock;
    const urgent = await lanes.urgent.claimBatch(this.#ctx, fence, first, size);
    // A dead run may have left mails of both lanes.
    this.#lane = urgent.ok && urgent.size > 0 && !urgent.recovered ? "urgent" : "ordinary";
    if (!urgent.ok || urgent.size > 0) return urgent;
    return lanes.ordinary.claimBatch(this.#ctx, fence, first, this.#mostOrdinary);
  }

  get #mostOrdinary(): number {
    const size = this.#ctx.config.get(settings.claimSize);
    return size - urgentRoom(size);
  }

  async handle(batch: Claim): Promise<StopReason | undefined> {
    const ctx = this.#ctx;
    const entries = await lanes[this.#lane].read(ctx, 0, batch.size);
    const passage: Passage = { standing: new Standing(entries), suppressed: new Map() };
    const mixed = batch.recovered ? entries.toSorted((one, other) => rankOf(one) - rankOf(other)) : entries;
    await this.#send(await this.#withoutPaused(mixed, passage), passage);
    if (this.#watchFailed) throw this.#watchFailed.error;
    if (this.#lock.signal.aborted) throw lockErrors.lock_lost();
    // Only now: requests that were under way had to end with the client that they began with.
    if (this.#ended === "credentials") await ctx.providers.email.reset();
    const left = passage.standing.items;
    if (left.length > 0) {
      this.#ended ??= ctx.shuttingDown() ? "signal" : "time_exhausted";
      await unreserveMails(ctx, this.#lock.fence, left);
    }
    return this.#ended;
  }

  /** Sends these, others of their lane that follow, and urgent ones that come meanwhile. */
  async #send(entries: readonly Entry<Attempt>[], passage: Passage): Promise<void> {
    if (!(await this.#mayTake(entries, passage))) return;
    const over = new AbortController();
    const watching = this.#lane === "urgent" ? undefined : this.#watch(over.signal, passage);
    try {
      // A third is settled and a third is fetched while a third is with the provider.
      const below = Math.floor((this.#mostOrdinary * 2) / 3);
      const refill = watching && { below, fetch: () => this.#following(passage) };
      await this.#pass(entries, passage, refill);
    } finally {
      over.abort();
      await watching;
    }
    // Those that came at the very end, and no others: nobody looks at the urgent lane any more.
    if (this.#hurried.length > 0) await this.#pass(this.#hurried.splice(0), passage);
  }

  /**
   * Who is suppressed is asked at the last moment, so that whoever left is heard for queued mails too; without an answer
   * nothing is sent.
   */
  async #mayTake(entries: readonly Entry<Attempt>[], { suppressed }: Passage): Promise<boolean> {
    try {
      const emails = [...new Set(entries.map(({ value }) => value.email))];
      for (const [email, why] of (await suppressedAmong(this.#ctx, { emails })).emails) suppressed.set(email, why);
      return true;
    } catch (error) {
      this.#ctx.alerts.error(error, "mails wait: nobody can say which addresses are suppressed");
      this.#ended ??= "time_exhausted";
      return false;
    }
  }

  /** Fetches urgent mails while others are being sent. */
  async #watch(over: AbortSignal, passage: Passage): Promise<void> {
    const ctx = this.#ctx;
    try {
      while ((await ctx.clock.sleep(LOOK_EVERY, over)) && !this.#stopping()) {
        const entries = await this.#more("urgent", ctx.config.get(settings.claimSize), passage);
        if (entries === "none") continue;
        if (!(await this.#mayTake(entries, passage))) return;
        this.#hurried.push(...entries);
      }
    } catch (error) {
      this.#watchFailed = { error };
    }
  }

  /** The mails that follow those of a passage. */
  async #following(passage: Passage): Promise<readonly Entry<Attempt>[] | "none"> {
    const entries = await this.#more("ordinary", this.#mostOrdinary, passage);
    if (entries === "none") return "none";
    const going = await this.#withoutPaused(entries, passage);
    return (await this.#mayTake(going, passage)) ? going : "none";
  }

  /** Fills the purgatory up from a lane, one call after the other. */
  #more(lane: Lane, limit: number, { standing }: Passage): Promise<readonly Entry<Attempt>[] | "none"> {
    const fetched = this.#claiming.then(async () => {
      const { moved, entries } = unlessFenced(await lanes[lane].fetchMore(this.#ctx, this.#lock.fence, limit));
      standing.join(entries);
      return moved === 0 ? ("none" as const) : entries;
    });
    this.#claiming = fetched.catch(() => {});
    return fetched;
  }

  async #withoutPaused(entries: readonly Entry<Attempt>[], { standing }: Passage): Promise<readonly Entry<Attempt>[]> {
    if (!this.#listsPaused) return entries;
    const { going, aside } = await withoutLists(this.#ctx, this.#lock.fence, entries);
    standing.leave(aside);
    return going;
  }

  async #pass(
    entries: readonly Entry<Attempt>[],
    { standing, suppressed }: Passage,
    refill?: Refill<Entry<Attempt>>,
  ): Promise<void> {
    const ctx = this.#ctx;
    await sendThroughWindow<Entry<Attempt>, Answer>(ctx, {
      items: entries,
      window: ctx.config.get(settings.window),
      groupSize: 1,
      perSecond: this.#pace,
      send: async ([entry]) => [await this.#deliver(entry!.value, suppressed)],
      settle: async (pairs) => {
        const sent: Sent[] = [];
        for (const { item, answer } of pairs) if (answer !== "held") sent.push({ entry: item, outcome: answer });
        const leaving = sent.map(({ entry }) => entry);
        const last = standing.lastOfHead(leaving)?.raw;
        const head = last && { fence: this.#lock.fence, last };
        for (const count of await settleSent(ctx, sent, head)) this.counts[count] += 1;
        // Their receipts are in the queue already.
        if (sent.some(({ outcome }) => outcome.ok && !outcome.hasReceipts))
          nudgeByName(ctx, "runners.emails.receipt_reconciliation");
        standing.leave(leaving);
        await this.#suppressUnreachable(sent);
        await tellAccepted(
          ctx,
          sent.flatMap(({ entry, outcome }) => (outcome.ok ? [entry.value] : [])),
        );
      },
      stop: () => this.#stopping(),
      ahead: () => (this.#hurried.length > 0 ? this.#hurried.splice(0) : NOTHING),
      refill,
    });
  }

  #stopping(): boolean {
    const ctx = this.#ctx;
    if (this.#ended !== undefined || this.#watchFailed !== undefined || this.#lock.signal.aborted) return true;
    return ctx.shuttingDown() || ctx.budget.exhausted();
  }

  /** One mail, at the pace that the provider's state allows; `held` when the run must end without it. */
  async #deliver(attempt: Attempt, suppressed: Suppressed): Promise<Answer> {
    const ctx = this.#ctx;
    // Asked again after every rest: whoever lost the lock meanwhile must not send what another run sends too.
    const mayNot = () => this.#ended !== undefined || this.#lock.signal.aborted;
    if (mayNot()) return "held";
    const outcome = await this.#gate.pass(
      async (): Promise<Answer> => {
        if (mayNot()) return "held";
        const written = await writeMail(ctx, attempt, suppressed);
        if (!written.ok) return written;
        return mayNot() ? "held" : ctx.providers.email.send(written.message);
      },
      (answer) => {
        if (answer === "held") return "neither";
        if (answer.ok) return "well";
        return answer.backoff && !isRefusalOfUs(answer) ? "badly" : "neither";
      },
    );
    if (outcome === undefined) {
      this.#ended ??= ctx.shuttingDown() ? "signal" : "time_exhausted";
      return "held";
    }
    if (outcome === "held" || outcome.ok || "word" in outcome) return outcome;
    // The chain of providers has told people already.
    if (isRefusalOfUs(outcome)) {
      this.#ended = "credentials";
      return "held";
    }
    if (outcome.accountStopped) tellAccountStopped(ctx, outcome.extra);
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

const isRefusalOfUs = (answer: Exclude<Answer, "held">) => "credentials" in answer && answer.credentials === true;

/** Urgent mails first. */
const rankOf = ({ value }: Entry<Attempt>) => (laneOf(value) === "urgent" ? 0 : 1);

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
  const pace = new Pace(ctx.clock, rate, { even: true });
  paces.set(ctx.config, { rate, pace });
  return pace;
}
