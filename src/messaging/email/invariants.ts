import { type Faults, type Invariant, type InvariantContext, seenTwice } from "../../kernel/keyspace/index.ts";
import { type Balance, brokenBalances, readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { type AuditedSet, inTwoPlaces, type Place, pendingFaults } from "../../mechanisms/pending-set/index.ts";
import { type PendingMail, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { atOnce, emailEventStats, emailSendStats, emailWebhookStats } from "./stats.ts";

/** Days that may be in Redis: those that are held, those about to be rotated, and one ahead. */
const OPEN_DAYS = 5;
/** What a job may be late by: the lease of a dead run's lock. */
const GRACE = 120;

const PENDING: AuditedSet<PendingMail> = {
  set: keys.pending(),
  hash: (id) => keys.pendingItem({ message_id: id }),
  codec: pendingHash,
};

const PLACES: readonly Place[] = [
  { key: keys.toSend(), type: "list" },
  { key: keys.urgent(), type: "list" },
  { key: keys.sendPurgatory(), type: "list" },
  { key: keys.paused(), type: "list" },
  { key: keys.retrying(), type: "zset" },
  { key: keys.urgentRetrying(), type: "zset" },
];

function* faultsOf(id: string, score: number, mail: PendingMail): Generator<string> {
  if (mail.message_id !== id) yield "has a hash that names another id";
  else if (mail.send_accepted_at !== score) yield "disagrees with its hash on when it was taken";
}

const PURGATORIES = [
  {
    purgatory: keys.sendPurgatory(),
    lock: keys.sendLock(),
    report: keys.sendReport(),
    limit: (ctx: InvariantContext) => ctx.config.get(settings.claimSize),
  },
  {
    purgatory: keys.eventPurgatory(),
    lock: keys.reconciliationLock(),
    report: keys.reconciliationReport(),
    limit: (ctx: InvariantContext) => ctx.config.get(settings.newsSize),
  },
];

/** A purgatory that nobody works on, although the job that would has had the time to. */
async function unattended(ctx: InvariantContext): Promise<Faults> {
  const { commands, topology } = ctx.redis;
  const now = ctx.clock.now();
  const looks = await Promise.all(
    PURGATORIES.map(async ({ purgatory, lock, report }) => {
      const [size, held, started] = await Promise.all([
        commands.llen(topology.key(purgatory)),
        commands.exists(topology.key(lock)),
        commands.hget(topology.key(report), "started_at"),
      ]);
      return { purgatory, left: size > 0 && held === 0 && !(now - Number(started) < GRACE) };
    }),
  );
  return new Map(
    looks.flatMap(({ purgatory, left }) =>
      left ? [[purgatory, `${purgatory} is not empty and no run attends to it`] as const] : [],
    ),
  );
}

async function brokenSums(
  ctx: InvariantContext,
  family: StatsFamily,
  balances: readonly Balance[],
): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const earliest = await commands.get(topology.key(family.earliest()));
  if (earliest === null || !/^\d{1,6}$/.test(earliest)) return [];
  const dates = Array.from({ length: OPEN_DAYS }, (_, at) => Number(earliest) + at);
  const days = await Promise.all(dates.map((date) => readDayAsIs(ctx, family, date)));
  return days.flatMap(({ events, breakdowns }, at) => {
    const counts = Object.fromEntries(Object.entries(events).map(([event, count]) => [event, Number(count)]));
    const broken = [...brokenBalances(balances, counts)];
    for (const [event, held] of Object.entries(breakdowns)) {
      const sum = Object.values(held).reduce((total, count) => total + Number(count), 0);
      if (sum !== (counts[event] ?? 0)) broken.push(`the breakdown of ${event} sums to ${sum}`);
    }
    const { attempted = 0, templated = 0, accepted = 0 } = counts;
    if (family.name === emailSendStats.name && !(accepted <= templated && templated <= attempted))
      broken.push("more mails were accepted than written, or written than tried");
    return broken.map((text) => `${family.name} on day ${dates[at]}: ${text}`);
  });
}

export const invariants: readonly Invariant[] = [
  {
    name: "email:pending_is_whole",
    doc: "Every id in email:receipt_pending has a hash of the declared shape that agrees with it, and no hash stands alone.",
    check: seenTwice((ctx) => pendingFaults(ctx, PENDING, faultsOf)),
  },
  {
    name: "email:mail_in_one_place",
    doc: "A mail is at most once in the send lanes, their purgatory, those that wait for a retry and those that await a receipt.",
    check: seenTwice((ctx) => inTwoPlaces(ctx, "mail", PLACES, PENDING)),
  },
  {
    name: "email:purgatories_are_batches",
    doc: "The purgatory of mails holds no more than CARILLON_EMAIL_CLAIM_SIZE, that of news no more than CARILLON_EMAIL_NEWS_SIZE.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const sizes = await Promise.all(PURGATORIES.map(({ purgatory }) => commands.llen(topology.key(purgatory))));
      return PURGATORIES.flatMap(({ purgatory, limit }, at) =>
        sizes[at]! > limit(ctx) ? [`${purgatory} holds ${sizes[at]} items; at most ${limit(ctx)}`] : [],
      );
    },
  },
  {
    name: "email:purgatories_are_attended",
    doc: "What a run left in a purgatory is taken up by the next one, as soon as the lock of the dead one is over.",
    check: seenTwice(unattended),
  },
  {
    name: "email:receipts_are_given_up",
    doc: "No mail awaits its receipt longer than CARILLON_EMAIL_RECEIPT_TIMEOUT_SECONDS while the job that gives up on receipts runs.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const now = ctx.clock.now();
      const started = Number(await commands.hget(topology.key(keys.staleReport()), "started_at"));
      if (!(now - started < GRACE)) return [];
      const timeout = ctx.config.get(settings.receiptTimeout);
      const late = await commands.zcount(topology.key(keys.pending()), "-inf", now - timeout - GRACE);
      return late > 0 ? [`email:receipt_pending holds ${late} mails that are older than ${timeout} s`] : [];
    },
  },
  {
    name: "email:counts_add_up",
    doc: "On every open day the counts of tries, news and webhooks add up, and so do their breakdowns.",
    async check(ctx) {
      const checks = [
        brokenSums(ctx, emailSendStats, atOnce.send),
        brokenSums(ctx, emailEventStats, atOnce.events),
        brokenSums(ctx, emailWebhookStats, atOnce.webhooks),
      ];
      return (await Promise.all(checks)).flat();
    },
  },
];
