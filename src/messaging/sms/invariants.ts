import {
  type Faults,
  type Invariant,
  type InvariantContext,
  type KeyName,
  seenTwice,
} from "../../kernel/keyspace/index.ts";
import { brokenOnOpenDays } from "../../mechanisms/dated-counters/index.ts";
import { MAX_ITEMS_PER_CALL } from "../../mechanisms/purgatory-queue/index.ts";
import { leftInPurgatories } from "../../mechanisms/run-report/index.ts";
import { smsCategory } from "../../providers/sms.ts";
import { type PendingSms, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { smsEventStats, smsPollingStats, smsWebhookStats } from "./stats.ts";

const PAGE = 500;
/** Seconds by which clocks may differ. */
const SKEW = 5;

async function* entriesIn({ redis: { commands, topology } }: InvariantContext, place: Place) {
  const name = topology.key(place.key);
  for (let start = 0; ; start += PAGE) {
    const end = start + PAGE - 1;
    const page = place.type === "zset" ? commands.zrange(name, start, String(end)) : commands.lrange(name, start, end);
    const raws = await page;
    yield* raws;
    if (raws.length < PAGE) return;
  }
}

/** Pending messages a page at a time, the hashes of a page in one round trip. */
async function* pendingPages({ redis: { commands, topology } }: InvariantContext) {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1), "WITHSCORES");
    const members = Array.from({ length: flat.length / 2 }, (_, at) => ({
      sid: flat[2 * at]!,
      due: Number(flat[2 * at + 1]),
    }));
    const raws = await Promise.all(
      members.map(({ sid }) => commands.hgetallBuffer(topology.key(keys.pendingItem({ sid }))).catch(() => undefined)),
    );
    yield members.map((member, at) => ({ ...member, raw: raws[at] }));
    if (members.length < PAGE) return;
  }
}

function decoded(raw: Record<string, Buffer> | undefined): PendingSms | string {
  if (raw === undefined) return "has something else where its hash should be";
  if (Object.keys(raw).length === 0) return "has no hash";
  try {
    return pendingHash.decode(raw);
  } catch {
    return "has a hash that does not have the declared shape";
  }
}

function* faultsOf(ctx: InvariantContext, sid: string, due: number, hash: PendingSms): Generator<string> {
  const { num_changes: changes, num_failures: failures } = hash;
  const now = ctx.clock.now();
  const furthest = Math.max(ctx.config.get(settings.silence), ctx.config.get(settings.silenceWithoutCallbacks)) + SKEW;
  if (hash.message_resource_sid !== sid) yield "names another sid";
  if (smsCategory(hash.message_resource_status) !== "pending") yield `is ${hash.message_resource_status}, an end`;
  if (changes < failures) yield `changed ${changes} times and failed ${failures} times`;
  if ((hash.failure_job_last_called_at === null) !== (failures === 0))
    yield "disagrees with itself on whether its failure job was called";
  if (due > now + furthest) yield "is due later than any silence lasts";
  if (hash.message_resource_created_at < hash.send_initially_queued_at - SKEW) yield "is older than its text";
}

async function pendingFaults(ctx: InvariantContext): Promise<Faults> {
  const faults = new Map<string, string>();
  for await (const page of pendingPages(ctx))
    for (const { sid, due, raw } of page) {
      const hash = decoded(raw);
      const found = typeof hash === "string" ? [hash] : [...faultsOf(ctx, sid, due, hash)];
      for (const fault of found) faults.set(`${sid} ${fault}`, `sms:pending ${sid} ${fault}`);
    }
  const { commands, topology } = ctx.redis;
  const prefix = topology.key(keys.pendingItem({ sid: "x" })).slice(0, -1);
  let cursor = "0";
  do {
    const [next, names] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
    cursor = next;
    if (names.length === 0) continue;
    const sids = names.map((name) => name.slice(prefix.length));
    const scores = await commands.zmscore(topology.key(keys.pending()), ...sids);
    for (const [at, sid] of sids.entries())
      if (scores[at] === null) faults.set(sid, `the hash of ${sid} is not in sms:pending`);
  } while (cursor !== "0");
  return faults;
}

interface Place {
  readonly key: KeyName<"list"> | KeyName<"zset">;
  readonly type: "list" | "zset";
}

const PLACES: readonly Place[] = [
  { key: keys.toSend(), type: "list" },
  { key: keys.sendPurgatory(), type: "list" },
  { key: keys.retrying(), type: "zset" },
];

/** Only the uid is looked for: whether an entry is sound is the audit's own question. */
function uidOf(raw: string): string | undefined {
  try {
    const { uid } = JSON.parse(raw) as { uid?: unknown };
    return typeof uid === "string" ? uid : undefined;
  } catch {
    return undefined;
  }
}

async function textsInTwoPlaces(ctx: InvariantContext): Promise<Faults> {
  const seen = new Map<string, string>();
  const twice = new Map<string, string>();
  const see = (uid: string | undefined, place: string) => {
    if (uid === undefined) return;
    const other = seen.get(uid);
    if (other === undefined) seen.set(uid, place);
    else twice.set(uid, `the text ${uid} is in ${[other, place].sort().join(" and ")}`);
  };
  for (const place of PLACES) for await (const raw of entriesIn(ctx, place)) see(uidOf(raw), place.key);
  for await (const page of pendingPages(ctx))
    for (const { raw } of page) see(raw?.uid?.toString("utf8"), keys.pending());
  return twice;
}

const PURGATORIES = [
  { purgatory: keys.sendPurgatory(), lock: keys.sendLock(), report: keys.sendReport },
  { purgatory: keys.recoveryPurgatory(), lock: keys.recoveryLock(), report: keys.recoveryReport },
  { purgatory: keys.eventPurgatory(), lock: keys.reconciliationLock(), report: keys.reconciliationReport },
];

export const invariants: readonly Invariant[] = [
  {
    name: "sms:pending_is_whole",
    doc: "Every sid in sms:pending has a hash of the declared shape that agrees with it, and no hash stands alone.",
    check: seenTwice(pendingFaults),
  },
  {
    name: "sms:text_in_one_place",
    doc: "A text is at most once in sms:to_send, sms:send_purgatory, sms:retrying and sms:pending together.",
    check: seenTwice(textsInTwoPlaces),
  },
  {
    name: "sms:purgatories_are_batches",
    doc: `A purgatory of texts, questions or news holds one batch at most, ${MAX_ITEMS_PER_CALL} items.`,
    async check({ redis: { commands, topology } }) {
      const sizes = await Promise.all(PURGATORIES.map(({ purgatory }) => commands.llen(topology.key(purgatory))));
      return PURGATORIES.flatMap(({ purgatory }, at) =>
        sizes[at]! > MAX_ITEMS_PER_CALL ? [`${purgatory} holds ${sizes[at]}`] : [],
      );
    },
  },
  {
    name: "sms:purgatories_are_held",
    doc: "What a run of sending texts, of asking about them or of working news in took, it finished, unless it was stopped or died.",
    check: seenTwice((ctx) => leftInPurgatories(ctx, PURGATORIES)),
  },
  {
    name: "sms:counts_add_up",
    doc: "On every open day the counts of news, webhooks and questions to the provider add up.",
    // These are counted in one step each, so they agree at any moment; those of sending agree when a day is over.
    check: (ctx) => brokenOnOpenDays(ctx, [smsEventStats, smsWebhookStats, smsPollingStats]),
  },
];
