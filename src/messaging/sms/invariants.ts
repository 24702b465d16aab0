import type { Invariant, KeyName } from "../../kernel/keyspace/index.ts";
import { readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { smsCategory } from "../../providers/sms.ts";
import { type PendingSms, pendingHash, SmsEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { smsEventStats, smsPollingStats, smsWebhookStats } from "./stats.ts";

type InvariantContext = Parameters<Invariant["check"]>[0];

const PAGE = 500;
/** The longest silence that is waited for, and what clocks may differ. */
const FURTHEST_DUE = 905;
const SKEW = 5;
/** Days that may be in Redis: those that are held, those about to be rotated, and one ahead. */
const OPEN_DAYS = 5;

async function* sidsOf({ redis: { commands, topology } }: InvariantContext) {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1), "WITHSCORES");
    if (flat.length === 0) return;
    for (let at = 0; at < flat.length; at += 2) yield { sid: flat[at]!, due: Number(flat[at + 1]) };
  }
}

async function hashOf({ redis: { commands, topology } }: InvariantContext, sid: string): Promise<PendingSms | string> {
  const raw = await commands.hgetallBuffer(topology.key(keys.pendingItem({ sid })));
  if (Object.keys(raw).length === 0) return "has no hash";
  try {
    return pendingHash.decode(raw);
  } catch (error) {
    return (error as Error).message;
  }
}

function* faultsOf(sid: string, due: number, hash: PendingSms, now: number): Generator<string> {
  const { num_changes: changes, num_failures: failures } = hash;
  if (hash.message_resource_sid !== sid) yield `names the sid ${hash.message_resource_sid}`;
  if (smsCategory(hash.message_resource_status) !== "pending") yield `is ${hash.message_resource_status}, an end`;
  if (changes < failures) yield `changed ${changes} times and failed ${failures} times`;
  if ((hash.failure_job_last_called_at === null) !== (failures === 0))
    yield "disagrees with itself on whether its failure job was called";
  if (due > now + FURTHEST_DUE) yield `is due in ${Math.round(due - now)} s`;
  if (hash.message_resource_created_at < hash.send_initially_queued_at - SKEW) yield "is older than its text";
}

async function uidsIn({ redis: { commands, topology } }: InvariantContext, key: KeyName<"list" | "zset">) {
  const name = topology.key(key);
  const items = (await commands.type(name)) === "zset" ? commands.zrange(name, 0, "-1") : commands.lrange(name, 0, -1);
  return (await items).map((raw) => {
    try {
      return SmsEntry.parse(JSON.parse(raw)).uid;
    } catch {
      return undefined;
    }
  });
}

type Counts = Readonly<Record<string, string>>;
const sum = (counts: Counts, names: readonly string[]) =>
  names.reduce((total, name) => total + Number(counts[name] ?? 0), 0);

const WAYS = ["updated", "duplicate", "out_of_order", "removed"];
const SUMS: readonly { readonly family: StatsFamily; readonly total: string; readonly parts: readonly string[] }[] = [
  { family: smsEventStats, total: "attempted", parts: ["received_via_webhook", "received_via_polling"] },
  { family: smsEventStats, total: "attempted", parts: ["pending", "succeeded", "failed"] },
  { family: smsEventStats, total: "attempted", parts: ["found", "unknown"] },
  { family: smsEventStats, total: "found", parts: WAYS },
  {
    family: smsWebhookStats,
    total: "received",
    parts: [
      "verified",
      "signature_missing",
      "signature_invalid",
      "body_read_error",
      "body_max_size_exceeded",
      "body_parse_error",
    ],
  },
  { family: smsWebhookStats, total: "verified", parts: ["accepted", "unprocessable"] },
  {
    family: smsPollingStats,
    total: "attempted",
    parts: [
      "received",
      "error_client_404",
      "error_client_429",
      "error_client_other",
      "error_server",
      "error_network",
      "error_internal",
    ],
  },
];

export const invariants: readonly Invariant[] = [
  {
    name: "sms:pending_is_whole",
    doc: "Every sid in sms:pending has a hash of the declared shape that agrees with it, and no hash stands alone.",
    async check(ctx) {
      const violations: string[] = [];
      const seen = new Set<string>();
      for await (const { sid, due } of sidsOf(ctx)) {
        seen.add(sid);
        const hash = await hashOf(ctx, sid);
        const faults = typeof hash === "string" ? [hash] : [...faultsOf(sid, due, hash, ctx.clock.now())];
        violations.push(...faults.map((fault) => `sms:pending ${sid} ${fault}`));
      }
      const { commands, topology } = ctx.redis;
      const prefix = topology.key(keys.pendingItem({ sid: "x" })).slice(0, -1);
      let cursor = "0";
      do {
        const [next, found] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
        cursor = next;
        const alone = found.map((name) => name.slice(prefix.length)).filter((sid) => !seen.has(sid));
        for (const sid of alone)
          if ((await commands.zscore(topology.key(keys.pending()), sid)) === null)
            violations.push(`sms:pending:${sid} is not in sms:pending`);
      } while (cursor !== "0");
      return violations;
    },
  },
  {
    name: "sms:text_in_one_place",
    doc: "A text is at most once in sms:to_send, sms:send_purgatory, sms:retrying and sms:pending together.",
    async check(ctx) {
      const places = [keys.toSend(), keys.sendPurgatory(), keys.retrying()];
      const uids = (await Promise.all(places.map((place) => uidsIn(ctx, place)))).flat();
      for await (const { sid } of sidsOf(ctx)) {
        const hash = await hashOf(ctx, sid);
        if (typeof hash !== "string") uids.push(hash.uid);
      }
      const seen = new Set<string>();
      return uids.flatMap((uid) => {
        if (uid === undefined) return [];
        if (seen.has(uid)) return [`the text ${uid} is in two places`];
        seen.add(uid);
        return [];
      });
    },
  },
  {
    name: "sms:counts_add_up",
    doc: "On every open day the counts of news, webhooks and questions to the provider add up.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const violations: string[] = [];
      for (const { family, total, parts } of SUMS) {
        const earliest = Number((await commands.get(topology.key(family.earliest()))) ?? Number.NaN);
        for (let date = earliest; date < earliest + OPEN_DAYS; date++) {
          const { events } = await readDayAsIs(ctx, family, date);
          if (sum(events, [total]) !== sum(events, parts))
            violations.push(`${family.name} on day ${date}: ${total} is not the sum of ${parts.join(", ")}`);
        }
      }
      return violations;
    },
  },
];
