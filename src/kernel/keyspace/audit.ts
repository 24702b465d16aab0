import type { Redis } from "ioredis";
import type { KernelContext } from "../context.ts";
import type { Catalogue, CatalogueEntry } from "./catalogue.ts";
import { type Finding, type FindingKind, Findings } from "./findings.ts";
import { DEEP, type Inspected, SAMPLED, scanPages } from "./inspect.ts";
import type { Invariant } from "./invariant.ts";
import { decodeSample } from "./sample.ts";
import { shownSentence } from "./secrecy.ts";

/**
 * Compares a live Redis with the catalogue.
 *
 * It walks with SCAN, a page at a time, and never asks for all keys at once, so it may run beside production traffic and
 * takes the same memory for a thousand keys as for a hundred million. SCAN gives no snapshot: a key that comes or goes
 * during the walk may be seen or not, and one that moves may be counted twice. Invariants are checked after the walk.
 */
export interface AuditOptions {
  readonly invariants?: readonly Invariant[];
  /** Reads far more of each collection, and weighs every element. */
  readonly deep?: boolean;
  /** How many findings of one kind and pattern are listed; all are counted. Default 20. */
  readonly shown?: number;
  onProgress?(done: number, total: number): void;
}

export interface PatternUsage {
  readonly pattern: string;
  readonly domain: string;
  readonly family: string;
  readonly type: string;
  readonly keys: number;
  readonly bytes: number;
  /** Elements of collections, bytes of strings. */
  readonly length: number;
  /** Values that were too large to read. */
  readonly unread: number;
}

export interface AuditResult {
  readonly ok: boolean;
  readonly started_at: number;
  readonly seconds: number;
  readonly deep: boolean;
  readonly keys: number;
  readonly bytes: number;
  /** All findings there are; `findings` lists the first few of each kind and pattern. */
  readonly found: number;
  readonly counts: readonly { readonly kind: FindingKind; readonly pattern: string | null; readonly count: number }[];
  readonly findings: readonly Finding[];
  readonly invariants: number;
  /** Patterns in use, the largest first. */
  readonly patterns: readonly PatternUsage[];
  /** Unknown keys by the first segment of their names. */
  readonly unknown: readonly { readonly prefix: string; readonly keys: number; readonly bytes: number }[];
}

/** TTLs are compared with this much patience, because a script computes them from its caller's clock. */
const TTL_TOLERANCE_MS = 2_000;
const UNKNOWN_PREFIXES = 50;
const OTHER_PREFIXES = "(others)";

type AuditContext = Pick<KernelContext, "redis" | "cacheRedis" | "sql" | "clock" | "config">;

export async function audit(ctx: AuditContext, catalogue: Catalogue, options: AuditOptions = {}): Promise<AuditResult> {
  const startedAt = ctx.clock.now();
  const started = ctx.clock.monotonic();
  const walk = new Walk(catalogue, new Findings(options.shown ?? 20));
  const connections = [...new Set([ctx.redis, ctx.cacheRedis])];
  // Connections of its own: a page of samples must not stand in the way of the process's other commands.
  const servers = connections.map((connection) => ({ connection, client: connection.duplicate() }));
  try {
    for (const { client } of servers) client.on("error", () => {});
    const total = await sumOfSizes(servers.map(({ client }) => client));
    for (const { connection, client } of servers)
      for await (const page of scanPages(client, options.deep ? DEEP : SAMPLED)) {
        for (const key of page) walk.see(key, connection.topology.documented(key.name));
        options.onProgress?.(walk.seen, Math.max(total, walk.seen));
      }
  } finally {
    for (const { client } of servers) client.disconnect();
  }
  const invariants = options.invariants ?? [];
  for (const invariant of invariants) await walk.check(ctx, invariant);
  return walk.result({
    started_at: startedAt,
    seconds: ctx.clock.monotonic() - started,
    deep: options.deep ?? false,
    invariants: invariants.length,
  });
}

async function sumOfSizes(clients: readonly Redis[]): Promise<number> {
  const sizes = await Promise.all(clients.map((client) => client.dbsize()));
  return sizes.reduce((sum, size) => sum + size, 0);
}

interface Usage {
  keys: number;
  bytes: number;
  length: number;
  unread: number;
}

/** What the walk has seen so far. Grows with the number of patterns and of listed findings, never with that of keys. */
class Walk {
  readonly #catalogue: Catalogue;
  readonly #findings: Findings;
  readonly #usage = new Map<CatalogueEntry, Usage>();
  readonly #unknown = new Map<string, { keys: number; bytes: number }>();
  seen = 0;
  #bytes = 0;

  constructor(catalogue: Catalogue, findings: Findings) {
    this.#catalogue = catalogue;
    this.#findings = findings;
  }

  see(key: Inspected, name: string): void {
    if (key.type === "none") return;
    this.seen += 1;
    this.#bytes += key.bytes;
    const entry = this.#catalogue.match(name)?.entry;
    if (!entry) {
      this.#seeUnknown(key, name);
      return;
    }
    this.#count(entry, key);
    const report = (kind: FindingKind, detail: string) =>
      this.#findings.add({ kind, pattern: entry.pattern, key: entry.secret ? null : name, detail });

    if (key.type !== entry.type) report("wrong_type", `is a ${key.type}, declared as ${entry.type}`);
    else {
      const reason = decodeSample(entry, key);
      if (reason !== undefined) report("undecodable_value", entry.secret ? "does not have the declared shape" : reason);
    }
    const { ttl } = entry;
    if (ttl.rule === "none" && key.pttl >= 0) report("forbidden_ttl", `expires in ${seconds(key.pttl)} s`);
    if (ttl.rule === "required" && key.pttl < 0) report("missing_ttl", "never expires");
    if (ttl.rule !== "none" && ttl.max !== undefined && key.pttl > ttl.max * 1000 + TTL_TOLERANCE_MS)
      report("excessive_ttl", `expires in ${seconds(key.pttl)} s, at most ${ttl.max} s are allowed`);
  }

  async check(ctx: AuditContext, invariant: Invariant): Promise<void> {
    const report = (detail: string) =>
      this.#findings.add({
        kind: "broken_invariant",
        pattern: invariant.name,
        key: null,
        detail: shownSentence(this.#catalogue, detail),
      });
    try {
      for (const violation of await invariant.check(ctx)) report(violation);
    } catch (error) {
      report(`could not be checked: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  result(run: Pick<AuditResult, "started_at" | "seconds" | "deep" | "invariants">): AuditResult {
    const largestFirst = (a: { bytes: number }, b: { bytes: number }) => b.bytes - a.bytes;
    return {
      ok: this.#findings.total === 0,
      ...run,
      keys: this.seen,
      bytes: this.#bytes,
      found: this.#findings.total,
      counts: this.#findings.counts,
      findings: this.#findings.kept,
      patterns: [...this.#usage]
        .map(([{ pattern, domain, family, type }, usage]) => ({ pattern, domain, family, type, ...usage }))
        .sort(largestFirst),
      unknown: [...this.#unknown].map(([prefix, usage]) => ({ prefix, ...usage })).sort(largestFirst),
    };
  }

  #count(entry: CatalogueEntry, key: Inspected): void {
    let usage = this.#usage.get(entry);
    if (!usage) {
      usage = { keys: 0, bytes: 0, length: 0, unread: 0 };
      this.#usage.set(entry, usage);
    }
    usage.keys += 1;
    usage.bytes += key.bytes;
    usage.length += key.length;
    if (key.sample === undefined) usage.unread += 1;
  }

  #seeUnknown(key: Inspected, name: string): void {
    const own = /^[^:]*/.exec(name)![0].slice(0, 60);
    const prefix = this.#unknown.has(own) || this.#unknown.size < UNKNOWN_PREFIXES ? own : OTHER_PREFIXES;
    const usage = this.#unknown.get(prefix) ?? { keys: 0, bytes: 0 };
    this.#unknown.set(prefix, { keys: usage.keys + 1, bytes: usage.bytes + key.bytes });
    const shown = name.length > 200 ? `${name.slice(0, 200)}…` : name;
    this.#findings.add({
      kind: "unknown_key",
      pattern: null,
      key: shown,
      detail: `a ${key.type} of ${key.bytes} bytes`,
    });
  }
}

function seconds(milliseconds: number): number {
  return Math.round(milliseconds / 1000);
}
