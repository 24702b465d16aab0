import {
  type Faults,
  type Invariant,
  type InvariantContext,
  type KeyName,
  seenTwice,
} from "../../kernel/keyspace/index.ts";
import { type Balance, brokenBalances, readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { type PendingMail, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { atOnce, emailEventStats, emailSendStats, emailWebhookStats } from "./stats.ts";

const PAGE = 500;
/** Days that may be in Redis: those that are held, those about to be rotated, and one ahead. */
const OPEN_DAYS = 5;
/** What a job may be late by: the lease of a dead run's lock. */
const GRACE = 120;

interface Place {
  readonly key: KeyName<"list"> | KeyName<"zset">;
  readonly type: "list" | "zset";
}

const PLACES: readonly Place[] = [
  { key: keys.toSend(), type: "list" },
  { key: keys.urgent(), type: "list" },
  { key: keys.sendPurgatory(), type: "list" },
  { key: keys.paused(), type: "list" },
  { key: keys.retrying(), type: "zset" },
  { key: keys.urgentRetrying(), type: "zset" },
];

async function* entriesIn({ redis: { commands, topology } }: InvariantContext, place: Place) {
  const name = topology.key(place.key);
  for (let start = 0; ; start += PAGE) {
    const end = start + PAGE - 1;
    const raws = await (place.type === "zset"
      ? commands.zrange(name, start, String(end))
      : commands.lrange(name, start, end));
    yield* raws;
    if (raws.length < PAGE) return;
  }
}

/** Mails that await a receipt a page at a time, the hashes of a page in one round trip. */
async function* pendingPages({ redis: { commands, topology } }: InvariantContext) {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1), "WITHSCORES");
    const members = Array.from({ length: flat.length / 2 }, (_, at) => ({
      id: flat[2 * at]!,
      score: Number(flat[2 * at + 1]),
    }));
    const raws = await Promise.all(
      members.map(({ id }) =>
        commands.hgetallBuffer(topology.key(keys.pendingItem({ message_id: id }))).catch(() => undefined),
      ),
    );
    yield members.map((member, at) => ({ ...member, raw: raws[at] }));
    if (members.length < PAGE) return;
  }
}

function decoded(raw: Record<string, Buffer> | undefined): PendingMail | string {
  if (raw === undefined) return "has something else where its hash should be";
  if (Object.keys(raw).length === 0) return "has no hash";
  try {
    return pendingHash.decode(raw);
  } catch {
    return "has a hash that does not have the declared shape";
  }
}

function faultOf(id: string, score: number, raw: Record<string, Buffer> | undefined): string | undefined {
  const hash = decoded(raw);
  if (typeof hash === "string") return hash;
  if (hash.message_id !== id) return "has a hash that names another id";
  if (hash.send_accepted_at !== score) return "disagrees with its hash on when it was taken";
  return undefined;
}

async function pendingFaults(ctx: InvariantContext): Promise<Faults> {
  const faults = new Map<string, string>();
  for await (const page of pendingPages(ctx))
    for (const { id, score, raw } of page) {
      const fault = faultOf(id, score, raw);
      if (fault) faults.set(id, `email:receipt_pending ${id} ${fault}`);
    }
  const { commands, topology } = ctx.redis;
  const prefix = topology.key(keys.pendingItem({ message_id: "x" })).slice(0, -1);
  let cursor = "0";
  do {
    const [next, names] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
    cursor = next;
    if (names.length === 0) continue;
    const ids = names.map((name) => name.slice(prefix.length));
    const scores = await commands.zmscore(topology.key(keys.pending()), ...ids);
    for (const [at, id] of ids.entries())
      if (scores[at] === null) faults.set(id, `email:receipt_pending:${id} is not in email:receipt_pending`);
  } while (cursor !== "0");
  return faults;
}

/** Only the uid is looked for: whether an entry is sound is the audit's own question. */
function uidOf(raw: string): string | undefined {
  try {
    const { uid } = JSON.parse(raw) as { uid?: unknown };
    return typeof uid === "string" ? uid : undefined;
  } catch {
    return undefined;
  }
}

async function mailsInTwoPlaces(ctx: InvariantContext): Promise<Faults> {
  const seen = new Map<string, string>();
  const twice = new Map<string, string>();
  const see = (uid: string | undefined, place: string) => {
    if (uid === undefined) return;
    const other = seen.get(uid);
    if (other === undefined) seen.set(uid, place);
    else twice.set(uid, `the mail ${uid} is in ${[other, place].sort().join(" and ")}`);
  };
  for (const place of PLACES) for await (const raw of entriesIn(ctx, place)) see(uidOf(raw), place.key);
  for await (const page of pendingPages(ctx))
    for (const { raw } of page) see(raw?.uid?.toString("utf8"), keys.pending());
  return twice;
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
    check: seenTwice(pendingFaults),
  },
  {
    name: "email:mail_in_one_place",
    doc: "A mail is at most once in the send lanes, their purgatory, those that wait for a retry and those that await a receipt.",
    check: seenTwice(mailsInTwoPlaces),
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
