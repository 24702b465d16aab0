import { createHash } from "node:crypto";
import { z } from "zod";
import type { KernelContext } from "../../kernel/context.ts";
import { type Catalogue, json } from "../../kernel/keyspace/index.ts";
import { quarantineOf } from "./entry.ts";
import { quarantineErrors } from "./errors.ts";
import { type QuarantinedEntry, quarantineKeys } from "./keys.ts";
import { requeueList, requeuePending, requeueZset } from "./scripts.ts";

/*
 * What becomes of entries that cannot be read.
 *
 *   queue or purgatory ──a consumer cannot decode it──▶ quarantine:{queue} ──an operator──▶ queue again, or gone
 *
 * The script that takes an entry out of its queue puts it here, so a crash leaves it in exactly one place. Nothing
 * leaves by itself. Every way out names the entry byte for byte, so what a second operator does to it has no effect.
 */

const PAGE = 100;
const SCAN_COUNT = 1000;
const HashAsJson = json(z.record(z.string(), z.string()), { shape: "a hash as JSON of texts" });

/** On a Cluster each family has its own quarantine; the one of `queue` lives beside it. */
function rendered(ctx: Pick<KernelContext, "redis">, queue: string): string {
  return ctx.redis.topology.scriptKeys([queue, quarantineOf(queue)])[1]!;
}

/** The queues that have quarantined entries, with how many. */
export async function quarantinedQueues(
  ctx: Pick<KernelContext, "redis">,
): Promise<{ queue: string; length: number }[]> {
  const { redis } = ctx;
  const found = new Map<string, number>();
  let cursor = "0";
  do {
    const match = `*${quarantineKeys.entries.compiled.literalPrefix}*`;
    const [next, page] = await redis.commands.scan(cursor, "MATCH", match, "COUNT", SCAN_COUNT, "TYPE", "list");
    cursor = next;
    const names = page.filter((name) => quarantineKeys.entries.compiled.match(redis.topology.documented(name)));
    const lengths = await Promise.all(names.map((name) => redis.commands.llen(name)));
    for (const [index, name] of names.entries()) {
      const { queue } = quarantineKeys.entries.compiled.match(redis.topology.documented(name))!;
      found.set(queue!, lengths[index]!);
    }
  } while (cursor !== "0");
  return [...found].map(([queue, length]) => ({ queue, length })).sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** One page of a queue's quarantine, newest first. */
export async function listQuarantined(
  ctx: Pick<KernelContext, "redis">,
  queue: string,
  page: { offset?: number; limit?: number } = {},
): Promise<QuarantinedEntry[]> {
  const from = page.offset ?? 0;
  const raws = await ctx.redis.commands.lrangeBuffer(rendered(ctx, queue), from, from + (page.limit ?? PAGE) - 1);
  return raws.map((raw) => readEntry(queue, raw));
}

export interface RequeueOptions {
  /** What goes back instead of the entry as it was. */
  readonly corrected?: string;
  /** For schedules and pending sets: when it is due; default now. */
  readonly score?: number;
  /** For pending sets: whose hash it is. */
  readonly member?: string;
}

/** Puts an entry back into the queue it came from, as it was or corrected. */
export async function requeueQuarantined(
  ctx: Pick<KernelContext, "redis" | "clock">,
  catalogue: Catalogue,
  queue: string,
  id: string,
  options: RequeueOptions = {},
): Promise<void> {
  const found = await findQuarantined(ctx, queue, id);
  if (!found) throw quarantineErrors.quarantined_entry_absent();
  const item = options.corrected ?? rawOf(found.entry);
  const score = options.score ?? ctx.clock.now();
  const key = quarantineOf(queue);
  const type = catalogue.match(queue)?.entry.type;
  let moved: boolean;
  if (type === "list") moved = await ctx.redis.run(requeueList, [key, queue], [found.raw, item]);
  else if (type !== "zset") throw quarantineErrors.not_requeueable();
  else if (!hasHashes(catalogue, queue))
    moved = await ctx.redis.run(requeueZset, [key, queue], [found.raw, item, score.toFixed(6)]);
  else {
    if (options.member === undefined) throw quarantineErrors.member_required();
    const fields = Object.entries(HashAsJson.decode(Buffer.from(item))).flat();
    const hash = `${queue}:${options.member}`;
    const args = [found.raw, options.member, score.toFixed(6), ...fields] as [Buffer, string, string, ...string[]];
    const outcome = await ctx.redis.run(requeuePending, [key, queue, hash], args);
    if (outcome === "duplicate") throw quarantineErrors.already_pending();
    moved = outcome === "moved";
  }
  if (!moved) throw quarantineErrors.quarantined_entry_absent();
}

/** Forgets an entry for good. */
export async function discardQuarantined(ctx: Pick<KernelContext, "redis">, queue: string, id: string): Promise<void> {
  const found = await findQuarantined(ctx, queue, id);
  if (!found || (await ctx.redis.commands.lrem(rendered(ctx, queue), 1, found.raw)) === 0)
    throw quarantineErrors.quarantined_entry_absent();
}

async function findQuarantined(
  ctx: Pick<KernelContext, "redis">,
  queue: string,
  id: string,
): Promise<{ entry: QuarantinedEntry; raw: Buffer } | undefined> {
  for (let from = 0; ; from += PAGE) {
    const raws = await ctx.redis.commands.lrangeBuffer(rendered(ctx, queue), from, from + PAGE - 1);
    for (const raw of raws) {
      const entry = readEntry(queue, raw);
      if (entry.id === id) return { entry, raw };
    }
    if (raws.length < PAGE) return undefined;
  }
}

/** Something strange in the quarantine itself must not hide the rest: it is shown under an id made from its bytes. */
function readEntry(queue: string, raw: Buffer): QuarantinedEntry {
  try {
    return quarantineKeys.entries.codec.decode(raw);
  } catch {
    const id = `unreadable_${createHash("sha256").update(raw).digest("base64url").slice(0, 11)}`;
    return { id, queue, raw_base64: raw.toString("base64"), reason: "not a quarantine entry", quarantined_at: 0 };
  }
}

function rawOf(entry: QuarantinedEntry): string | Buffer {
  return "raw" in entry ? entry.raw : Buffer.from(entry.raw_base64, "base64");
}

/** A zset is a pending set when the catalogue declares a hash per member below its name. */
function hasHashes(catalogue: Catalogue, queue: string): boolean {
  return catalogue.entries.some((entry) => entry.type === "hash" && entry.compiled.literalPrefix === `${queue}:`);
}
