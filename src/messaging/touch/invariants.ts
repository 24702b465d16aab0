import { type Invariant, type InvariantContext, type KeyName, seenTwice } from "../../kernel/keyspace/index.ts";
import { brokenOnOpenDays } from "../../mechanisms/dated-counters/index.ts";
import { leftInPurgatories } from "../../mechanisms/run-report/index.ts";
import { waitingAmong } from "../links/service.ts";
import { callback, TouchEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { touchSendStats } from "./stats.ts";

const PAGE = 500;
/** The search for touches without an end runs every quarter of an hour. */
const LATE = 1_200;
const SKEW = 5;

async function pending(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  const now = ctx.clock.now();
  const oldest = now - ctx.config.get(settings.pendingExpiry) - LATE;
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1), "WITHSCORES");
    if (flat.length === 0) break;
    const uids = flat.filter((_, at) => at % 2 === 0);
    const held = await Promise.all(
      uids.map(async (uid) => ({
        hash: await commands.hgetallBuffer(topology.key(keys.pendingItem({ uid }))),
        remaining: await commands.scard(topology.key(keys.remaining({ uid }))),
      })),
    );
    for (const [at, uid] of uids.entries()) {
      const score = Number(flat[2 * at + 1]);
      if (score > now + SKEW || score < oldest) violations.push(`the touch ${uid} has waited since an impossible time`);
      const { hash, remaining } = held[at]!;
      const callbacks = Object.values(hash);
      if (callbacks.length === 0 || remaining === 0)
        violations.push(`the touch ${uid} waits without callbacks or messages`);
      for (const raw of callbacks)
        try {
          callback.decode(raw);
        } catch (error) {
          violations.push(`a callback of the touch ${uid} cannot be read: ${(error as Error).message}`);
        }
    }
  }
  return [...violations, ...(await alone(ctx))];
}

/** Hashes and sets of touches that do not wait. */
async function alone({ redis: { commands, topology } }: InvariantContext): Promise<readonly string[]> {
  const violations: string[] = [];
  const prefix = topology.key(keys.pendingItem({ uid: "x" })).slice(0, -1);
  let cursor = "0";
  do {
    const [next, found] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
    cursor = next;
    const uids = [...new Set(found.map((name) => name.slice(prefix.length).replace(/:remaining$/, "")))];
    if (uids.length === 0) continue;
    const scores = await commands.zmscore(topology.key(keys.pending()), ...uids);
    for (const [at, uid] of uids.entries())
      if (scores[at] === null) violations.push(`touch:pending lacks the touch ${uid}`);
  } while (cursor !== "0");
  return violations;
}

/** Whom to tell of is known for as long as there may be something to tell. */
async function toTell({ redis: { commands, topology } }: InvariantContext): Promise<readonly string[]> {
  const violations: string[] = [];
  let cursor = "0";
  do {
    const [next, flat] = await commands.hscan(topology.key(keys.toTell()), cursor, "COUNT", PAGE);
    cursor = next;
    const uids = flat.filter((_, at) => at % 2 === 0);
    const scores = uids.length === 0 ? [] : await commands.zmscore(topology.key(keys.pending()), ...uids);
    for (const [at, uid] of uids.entries())
      if (scores[at] === null) violations.push(`touch:to_tell has the touch ${uid}, which ended`);
  } while (cursor !== "0");
  return violations;
}

async function linksOfPending(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  for (let start = 0; ; start += PAGE) {
    const uids = await commands.zrange(topology.key(keys.pending()), start, String(start + PAGE - 1));
    if (uids.length === 0) return violations;
    const raws = await Promise.all(
      uids.map((uid) => commands.hget(topology.key(keys.pendingItem({ uid })), "success_callback")),
    );
    const wanted = uids.flatMap((uid, at) => storedBy(raws[at]).map((code) => ({ uid, code })));
    const waiting = await waitingAmong(
      ctx,
      wanted.map(({ code }) => code),
    );
    for (const { uid, code } of wanted)
      if (!waiting.has(code)) violations.push(`a link of the touch ${uid} is gone before it ended`);
  }
}

function storedBy(raw: string | null | undefined): readonly string[] {
  try {
    const { name, kwargs } = callback.decode(Buffer.from(raw ?? ""));
    return name === "runners.touch.persist_links" && Array.isArray(kwargs.codes) ? kwargs.codes.map(String) : [];
  } catch {
    return [];
  }
}

async function uidsIn({ redis: { commands, topology } }: InvariantContext, key: KeyName<"list">): Promise<string[]> {
  const uids: string[] = [];
  for (let start = 0; ; start += PAGE) {
    const raws = await commands.lrange(topology.key(key), start, start + PAGE - 1);
    if (raws.length === 0) return uids;
    for (const raw of raws)
      try {
        uids.push(TouchEntry.parse(JSON.parse(raw)).uid);
      } catch {
        // The audit itself reports what cannot be read.
      }
  }
}

export const invariants: readonly Invariant[] = [
  {
    name: "touch:pending_is_whole",
    doc: "Every touch that waits for its end has a callback and a message that has not ended, and no part of one stands alone.",
    check: seenTwice(pending),
  },
  {
    name: "touch:told_of_pending",
    doc: "Only touches that wait for their end are kept for telling of it.",
    check: seenTwice(toTell),
  },
  {
    name: "touch:pending_links_wait",
    doc: "The links that a waiting touch would have stored are still there to be stored.",
    check: seenTwice(linksOfPending),
  },
  {
    name: "touch:purgatories_are_batches",
    doc: "The purgatories hold no more than CARILLON_TOUCH_BATCH touches and CARILLON_TOUCH_LOG_BATCH rows.",
    async check({ redis: { commands, topology }, config }) {
      const purgatories = [
        [keys.sendPurgatory(), config.get(settings.batch)],
        [keys.logPurgatory(), config.get(settings.logBatch)],
      ] as const;
      const sizes = await Promise.all(purgatories.map(([key]) => commands.llen(topology.key(key))));
      return purgatories.flatMap(([key, most], at) =>
        sizes[at]! > most ? [`${key} holds ${sizes[at]} items; at most ${most}`] : [],
      );
    },
  },
  {
    name: "touch:purgatories_are_held",
    doc: "What a run of sending or of writing rows took, it finished, unless it was stopped or died; what a dead run left is taken up within ten minutes.",
    check: seenTwice((ctx) =>
      leftInPurgatories(ctx, [
        { purgatory: keys.sendPurgatory(), lock: keys.sendLock(), report: keys.sendReport },
        { purgatory: keys.logPurgatory(), lock: keys.logLock(), report: keys.logReport },
      ]),
    ),
  },
  {
    name: "touch:touch_in_one_place",
    doc: "A touch is at most once in touch:to_send and touch:send_purgatory together.",
    check: seenTwice(async (ctx) => {
      const uids = [...(await uidsIn(ctx, keys.toSend())), ...(await uidsIn(ctx, keys.sendPurgatory()))];
      const seen = new Set<string>();
      return uids.flatMap((uid) => {
        if (seen.has(uid)) return [`the touch ${uid} is in two places`];
        seen.add(uid);
        return [];
      });
    }),
  },
  {
    name: "touch:counts_add_up",
    doc: "On every open day the touches that were tried are those that reached somebody, nobody, or came too late.",
    check: seenTwice((ctx) => brokenOnOpenDays(ctx, [touchSendStats])),
  },
];
