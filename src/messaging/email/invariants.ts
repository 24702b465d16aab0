import type { Invariant, KeyName } from "../../kernel/keyspace/index.ts";
import { readDayAsIs, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { Attempt, type PendingMail, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { emailEventStats, emailSendStats, emailWebhookStats } from "./stats.ts";

type InvariantContext = Parameters<Invariant["check"]>[0];

const PAGE = 500;
/** Days that may be in Redis: those that are held, those about to be rotated, and one ahead. */
const OPEN_DAYS = 5;
/** What the search for missing receipts may be late by. */
const GRACE = 120;

async function* idsOf({ redis: { commands, topology } }: InvariantContext) {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1), "WITHSCORES");
    if (flat.length === 0) return;
    for (let at = 0; at < flat.length; at += 2) yield { id: flat[at]!, score: Number(flat[at + 1]) };
  }
}

async function hashOf({ redis: { commands, topology } }: InvariantContext, id: string): Promise<PendingMail | string> {
  const raw = await commands.hgetallBuffer(topology.key(keys.pendingItem({ message_id: id })));
  if (Object.keys(raw).length === 0) return "has no hash";
  try {
    return pendingHash.decode(raw);
  } catch (error) {
    return (error as Error).message;
  }
}

async function textsIn({ redis: { commands, topology } }: InvariantContext, key: KeyName<"list" | "zset">) {
  const name = topology.key(key);
  return (await commands.type(name)) === "zset" ? commands.zrange(name, 0, "-1") : commands.lrange(name, 0, -1);
}

const MAIL_PLACES = [
  keys.toSend(),
  keys.urgent(),
  keys.sendPurgatory(),
  keys.retrying(),
  keys.urgentRetrying(),
  keys.paused(),
] as const;

const SUMS: readonly { readonly family: StatsFamily; readonly total: string; readonly parts: readonly string[] }[] = [
  { family: emailSendStats, total: "attempted", parts: ["accepted", "failed_permanently", "failed_transiently"] },
  { family: emailEventStats, total: "attempted", parts: ["succeeded", "bounced", "complaint"] },
  {
    family: emailWebhookStats,
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
  { family: emailWebhookStats, total: "verified", parts: ["accepted", "unprocessable"] },
];

type Counts = Readonly<Record<string, string>>;
const sum = (counts: Counts, names: readonly string[]) =>
  names.reduce((total, name) => total + Number(counts[name] ?? 0), 0);

export const invariants: readonly Invariant[] = [
  {
    name: "email:pending_is_whole",
    doc: "Every id in email:receipt_pending has a hash of the declared shape that agrees with it, and no hash stands alone.",
    async check(ctx) {
      const violations: string[] = [];
      const seen = new Set<string>();
      for await (const { id, score } of idsOf(ctx)) {
        seen.add(id);
        const hash = await hashOf(ctx, id);
        if (typeof hash === "string") violations.push(`email:receipt_pending ${id} ${hash}`);
        else if (hash.message_id !== id) violations.push(`email:receipt_pending ${id} names the id ${hash.message_id}`);
        else if (hash.send_accepted_at !== score)
          violations.push(`email:receipt_pending ${id} disagrees with its hash on when it was taken`);
      }
      const { commands, topology } = ctx.redis;
      const prefix = topology.key(keys.pendingItem({ message_id: "x" })).slice(0, -1);
      let cursor = "0";
      do {
        const [next, found] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
        cursor = next;
        for (const id of found.map((name) => name.slice(prefix.length)).filter((one) => !seen.has(one)))
          if ((await commands.zscore(topology.key(keys.pending()), id)) === null)
            violations.push(`email:receipt_pending:${id} is not in email:receipt_pending`);
      } while (cursor !== "0");
      return violations;
    },
  },
  {
    name: "email:mail_in_one_place",
    doc: "A mail is at most once in the send lanes, their purgatory, those that wait for a retry and those that await a receipt.",
    async check(ctx) {
      const violations: string[] = [];
      const seen = new Set<string>();
      const meet = (uid: string) => {
        if (seen.has(uid)) violations.push(`the mail ${uid} is in two places`);
        seen.add(uid);
      };
      for (const place of MAIL_PLACES)
        for (const text of await textsIn(ctx, place)) {
          try {
            meet(Attempt.parse(JSON.parse(text)).uid);
          } catch {
            violations.push(`${place} holds what is no mail`);
          }
        }
      for await (const { id } of idsOf(ctx)) {
        const hash = await hashOf(ctx, id);
        if (typeof hash !== "string") meet(hash.uid);
      }
      return violations;
    },
  },
  {
    name: "email:receipts_are_given_up",
    doc: "No mail awaits its receipt longer than a day while the job that gives up on receipts runs.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const now = ctx.clock.now();
      const started = Number(await commands.hget(topology.key(keys.staleReport()), "started_at"));
      if (!(now - started < GRACE)) return [];
      const late = await commands.zcount(topology.key(keys.pending()), "-inf", now - 86_400 - GRACE);
      return late > 0 ? [`email:receipt_pending holds ${late} mails that are older than a day`] : [];
    },
  },
  {
    name: "email:counts_add_up",
    doc: "On every open day the counts of tries, news and webhooks add up.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const violations: string[] = [];
      for (const { family, total, parts } of SUMS) {
        const earliest = Number((await commands.get(topology.key(family.earliest()))) ?? Number.NaN);
        for (let date = earliest; date < earliest + OPEN_DAYS; date++) {
          const { events } = await readDayAsIs(ctx, family, date);
          if (sum(events, [total]) !== sum(events, parts))
            violations.push(`${family.name} on day ${date}: ${total} is not the sum of ${parts.join(", ")}`);
          if (family === emailSendStats && sum(events, ["templated"]) < sum(events, ["accepted"]))
            violations.push(`${family.name} on day ${date}: more mails were accepted than written`);
        }
      }
      return violations;
    },
  },
];
