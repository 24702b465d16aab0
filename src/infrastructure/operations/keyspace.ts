import type { z } from "zod";
import type { Context } from "../../jobs/index.ts";
import { type AuditResult, keys } from "./keys.ts";

/** What the last audit found; null when nobody asked for one within a week. One that cannot be read is as none. */
export async function readLastAudit({ redis }: Pick<Context, "redis">): Promise<z.infer<typeof AuditResult> | null> {
  const raw = await redis.commands.getBuffer(redis.topology.key(keys.lastAudit()));
  if (raw === null) return null;
  try {
    return keys.lastAudit.codec.decode(raw);
  } catch {
    return null;
  }
}

export interface KeyExamples {
  /** Names as documented, in no order. */
  readonly items: readonly string[];
  /** Whether all there are could be listed. */
  readonly complete: boolean;
}

const PAGE = 1_000;
/** However large the keyspace is, a look for examples ends after this many pages of names. */
const MOST_PAGES = 100;

/** Some live keys of a pattern; none of a secret one, whose names nobody should read. */
export async function examplesOf(
  ctx: Pick<Context, "redis" | "cacheRedis" | "catalogue">,
  pattern: string,
  limit: number,
): Promise<KeyExamples> {
  const entry = ctx.catalogue.entries.find((each) => each.kind === "key" && each.pattern === pattern);
  if (!entry || entry.secret) return { items: [], complete: false };
  const { commands, topology } = entry.cache ? ctx.cacheRedis : ctx.redis;
  if (entry.compiled.parameters.length === 0) {
    const there = await Promise.all(topology.copies(pattern).map((copy) => commands.exists(copy)));
    return { items: there.some((count) => count > 0) ? [pattern] : [], complete: true };
  }
  const found = new Set<string>();
  const glob = `*${escaped(entry.compiled.literalPrefix)}*`;
  let cursor = "0";
  for (let page = 0; page < MOST_PAGES; page++) {
    const [next, names] = await commands.scan(cursor, "MATCH", glob, "COUNT", PAGE);
    cursor = next;
    for (const name of names.map((each) => topology.documented(each)))
      if (ctx.catalogue.match(name)?.entry === entry) found.add(name);
    if (cursor === "0" || found.size > limit) break;
  }
  return { items: [...found].slice(0, limit), complete: cursor === "0" && found.size <= limit };
}

const escaped = (text: string) => text.replace(/[*?[\]\\^]/g, "\\$&");
