import { runAlone } from "../../jobs/alone.ts";
import type { Context, JobContext } from "../../jobs/context.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { type Entry, purgatoryQueue } from "../../mechanisms/purgatory-queue/index.ts";
import { Pace } from "../../mechanisms/settling-window/index.ts";
import type { Carried } from "../../providers/provider-chain.ts";
import { MAX_PUSH_MESSAGES, type TicketOutcome } from "../../providers/push.ts";
import { type CheckEntry, checkEntry, LONGEST_TICKET_ID, type SendEntry, sendEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { type Handled, NoKwargs, runLine } from "./line.ts";
import { settings } from "./settings.ts";
import { failureEvent } from "./settlement.ts";
import { pushTicketStats, type TicketEvent } from "./stats.ts";
import { failureJob } from "./story.ts";

/**
 * Sending.
 *
 *   to_send ──claim──▶ purgatory ──request──▶ ticket ──settle──▶ cold
 *      ▲ ▲                 │           └────▶ failure ──settle──▶ failure job ──▶ retrying | given up
 *      │ └────put back─────┘                                                        │
 *      └──────────────────────────────due───────────────────────────────────────────┘
 *
 * Redis is authoritative, and a notification is in exactly one of these places. A process that dies leaves its batch in the
 * purgatory; the next run handles that first. What the provider had taken by then is sent again, at most `push.window`
 * notifications, and counted once. When the provider refuses our credentials nothing fails: what was not taken goes back to the
 * head of the queue in order, and the run ends.
 */
export const sendQueue = purgatoryQueue({
  queue: keys.toSend(),
  purgatory: keys.sendPurgatory(),
  retrying: keys.retrying(),
  codec: sendEntry,
});

export const sendPush: Runner<typeof NoKwargs> = defineRunner({
  name: "runners.push.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the notifications that wait, and those whose next try is due.",
  async run(ctx) {
    await runAlone(ctx, sendPush, {
      lock: keys.sendLock(),
      queues: [keys.toSend()],
      schedules: [keys.retrying()],
      work: sendWaiting,
    });
  },
});

function sendWaiting(ctx: JobContext, lock: Lock) {
  return runLine<SendEntry, Carried<TicketOutcome>, TicketEvent>(ctx, lock, {
    runner: sendPush.name,
    queue: sendQueue,
    report: keys.sendReport,
    handledCount: "num_messages_attempted",
    stats: pushTicketStats,
    groupSize: MAX_PUSH_MESSAGES,
    pace: paceOf(ctx),
    ask: async (group) =>
      withoutStrangers(
        await ctx.providers.push.send(
          group.map(({ value: { push_token: to, contents } }) => ({
            to,
            title: contents.title,
            body: contents.body,
            channelId: contents.channel_id,
          })),
        ),
      ),
    handle: (entry, outcome) => handled(ctx, entry, outcome),
  });
}

function handled(ctx: Context, { raw, value }: Entry<SendEntry>, answer: Carried<TicketOutcome>): Handled<TicketEvent> {
  const outcome = answer.ok && answer.ticket.id.length > LONGEST_TICKET_ID ? notFollowable(answer) : answer;
  const { uid, initially_queued_at: queuedAt } = value;
  const { provider } = outcome;
  if (!outcome.ok) {
    if (outcome.credentials) return "refused";
    const event = failureEvent(pushTicketStats, outcome.identifier);
    const becomes = { job: failureJob(ctx, value, outcome) };
    const note = { uid, step: "failed", provider, detail: outcome.identifier };
    return {
      outcome: outcome.retryable ? "failed_transiently" : "failed_permanently",
      settled: { raw, queuedAt, becomes, event, note },
    };
  }
  const ticket = ticketOf(ctx, value, outcome.ticket.id, provider);
  const becomes = { ticket: checkEntry.encode(ticket), score: ticket.initially_queued_at };
  const note = { uid, step: "accepted", provider };
  return { outcome: "succeeded", settled: { raw, queuedAt, becomes, event: "succeeded", note } };
}

/**
 * A provider that knows us for some of a request, and refuses our credentials for others, means these devices: they belong
 * to a project that is not ours. They fail, because waiting for better credentials would hold up everybody behind them.
 */
function withoutStrangers(outcomes: readonly Carried<TicketOutcome>[]): readonly Carried<TicketOutcome>[] {
  const isRefused = (outcome: Carried<TicketOutcome>) => !outcome.ok && outcome.credentials === true;
  if (!outcomes.some(isRefused) || outcomes.every(isRefused)) return outcomes;
  return outcomes.map((outcome) => (isRefused(outcome) ? { ...outcome, credentials: undefined } : outcome));
}

/** A ticket that long would make an entry that nobody reads: better a failure that is told of. */
function notFollowable({ ticket, provider }: Carried<TicketOutcome & { ok: true }>): Carried<TicketOutcome> {
  const extra = `the ticket has an id of ${ticket.id.length} characters; at most ${LONGEST_TICKET_ID} are kept`;
  return { ok: false, identifier: "InternalError", subidentifier: null, retryable: false, extra, ticket, provider };
}

/** How many fields an entry has to which nobody added any. */
const OWN_FIELDS = 9;

/** Whatever others added to the entry stays with it; copying what may be anything is slow, so only where there is any. */
function ticketOf(ctx: Context, sent: SendEntry, id: string, provider: string | null): CheckEntry {
  const now = ctx.clock.now();
  const {
    uid,
    initially_queued_at: attempt_initially_queued_at,
    push_token,
    contents,
    failure_job,
    success_job,
  } = sent;
  const ticket: CheckEntry = {
    aud: "check",
    uid,
    attempt_initially_queued_at,
    initially_queued_at: now,
    retry: 0,
    last_queued_at: now,
    push_ticket: { status: "ok", id },
    push_ticket_created_at: now,
    provider,
    push_token,
    contents,
    failure_job,
    success_job,
  };
  return Object.keys(sent).length > OWN_FIELDS ? { ...sent, ...ticket } : ticket;
}

const paces = new WeakMap<object, Pace>();

/** One pace a process: two runs in the same second share its allowance. */
function paceOf(ctx: Context): Pace {
  const known = paces.get(ctx.config);
  if (known) return known;
  const pace = new Pace(ctx.clock, ctx.config.get(settings.maxPerSecond));
  paces.set(ctx.config, pace);
  return pace;
}
