import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { headerFrame, type TaggedFrame, taggedFrame } from "../../kernel/keyspace/frames.ts";
import { channel, expires, family, json, literal, string, text } from "../../kernel/keyspace/index.ts";
import { type CachePlan, type LayeredCache, LayeredCaches, messages } from "./index.ts";
import { takeFillLocks } from "./transitions.ts";

export const Title = z.object({ title: z.string() });
export type Title = z.infer<typeof Title>;
export const title = json(Title);
const Header = z.object({ uid: z.string(), min_checked_at: z.number(), have_updated: z.boolean() });
const header = headerFrame(Header);

export const keys = family("shelf", {
  value: string("shelf:value:{uid}", title, { doc: "a cached title", ttl: expires(600) }),
  lock: string("shelf:lock:{uid}", literal("1"), { doc: "who fills it", ttl: expires(3), lock: "basic" }),
  owner: string("shelf:lock:{uid}:owner", text, { doc: "token of the filler", ttl: expires(3), origin: "carillon" }),
  pushed: channel("ps:shelf", header, { doc: "fills and purges" }),
  tagged: channel("ps:shelf:tagged", taggedFrame, { doc: "fills and purges without times" }),
});

export const timed = messages(header, {
  write: (message) =>
    message.kind === "fill"
      ? { header: { uid: message.id, min_checked_at: message.checkedAt!, have_updated: true }, value: message.encoded }
      : {
          header: { uid: message.ids[0]!, min_checked_at: message.minCheckedAt!, have_updated: false },
          value: Buffer.alloc(0),
        },
  read: ({ header: { uid, min_checked_at, have_updated }, value }) =>
    have_updated
      ? { kind: "fill", id: uid, encoded: value, checkedAt: min_checked_at }
      : { kind: "purge", ids: [uid], minCheckedAt: min_checked_at },
});

const untimed = messages<TaggedFrame>(taggedFrame, {
  write: (message) =>
    message.kind === "fill"
      ? { kind: "fill", uid: message.id, value: message.encoded }
      : { kind: "purge", uid: message.ids[0]! },
  read: (frame) =>
    frame.kind === "fill" ? { kind: "fill", id: frame.uid, encoded: frame.value } : { kind: "purge", ids: [frame.uid] },
});

export const lock = { key: (uid: string) => keys.lock({ uid }), owner: (uid: string) => keys.owner({ uid }) };
export const redis = { key: (uid: string) => keys.value({ uid }), ttl: 600 };
export const shapes = {
  "with a value in Redis": { lock, redis, channel: { name: keys.pushed(), frames: timed } },
  "without a value in Redis": { lock, channel: { name: keys.pushed(), frames: timed } },
  "with frames that carry no time": { lock, channel: { name: keys.tagged(), frames: untimed } },
} satisfies Record<string, Partial<CachePlan<Title>>>;

/** The source that all processes share: rows, and how it was read. */
export class Shelf {
  readonly rows = new Map<string, string>();
  readonly calls: string[][] = [];
  #gate: Promise<void> | undefined;
  #open: (() => void) | undefined;

  /** From now on reads take the rows as they are and are answered only after `release`. */
  stall(): void {
    if (this.#gate) return;
    this.#gate = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  release(): void {
    this.#open?.();
    this.#gate = undefined;
  }

  read = async (ids: readonly string[]): Promise<Map<string, Title>> => {
    this.calls.push([...ids]);
    const found = ids.flatMap((id) => (this.rows.has(id) ? [[id, { title: this.rows.get(id)! }] as const] : []));
    await this.#gate;
    return new Map(found);
  };
}

export interface Process {
  readonly ctx: KernelContext & { readonly alerts: AlertRecorder };
  readonly caches: LayeredCaches;
  readonly cache: LayeredCache<Title>;
}

/** A Redis, a shelf, and any number of processes that cache it. */
export class Library {
  readonly context: TestContext;
  readonly folder = mkdtempSync(join(tmpdir(), "carillon-cache-"));
  shelf = new Shelf();
  #opened: LayeredCaches[] = [];

  private constructor(context: TestContext) {
    this.context = context;
  }

  static async open(): Promise<Library> {
    return new Library(await openTestContext());
  }

  async start(
    plan: Partial<CachePlan<Title>> = shapes["with a value in Redis"],
    options: { directory?: string; overrides?: Partial<KernelContext> } = {},
  ): Promise<Process> {
    const ctx = this.context.process(options.overrides);
    const caches = new LayeredCaches(ctx, { directory: options.directory });
    this.#opened.push(caches);
    const source = this.shelf.read;
    const cache = await caches.open<Title>({ name: "shelf", codec: title, ttl: 600, source, ...plan });
    return { ctx, caches, cache };
  }

  /** A filler elsewhere takes the lock and never comes back. */
  async deadFiller(uid: string): Promise<void> {
    await this.context.redis.run(takeFillLocks, [keys.lock({ uid }), keys.owner({ uid })], ["gone", 3000]);
  }

  /** Ends all processes as a shutdown does. */
  async stopAll(): Promise<void> {
    for (const caches of this.#opened.splice(0)) await caches.close();
  }

  /** Empty, for the next test. */
  async reset(): Promise<void> {
    await this.context.flush();
    this.shelf = new Shelf();
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
