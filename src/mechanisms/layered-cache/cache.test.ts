import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { startTestRedis } from "../../../test/harness/redis.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { headerFrame, type TaggedFrame, taggedFrame } from "../../kernel/keyspace/frames.ts";
import { channel, expires, family, json, literal, string, text } from "../../kernel/keyspace/index.ts";
import { type CachePlan, type LayeredCache, LayeredCaches, messages } from "./index.ts";
import { takeFillLocks } from "./transitions.ts";

const Title = z.object({ title: z.string() });
type Title = z.infer<typeof Title>;
const title = json(Title);
const Header = z.object({ uid: z.string(), min_checked_at: z.number(), have_updated: z.boolean() });
const header = headerFrame(Header);

const keys = family("shelf", {
  value: string("shelf:value:{uid}", title, { doc: "a cached title", ttl: expires(600) }),
  lock: string("shelf:lock:{uid}", literal("1"), { doc: "who fills it", ttl: expires(3), lock: "basic" }),
  owner: string("shelf:lock:{uid}:owner", text, { doc: "token of the filler", ttl: expires(3), origin: "carillon" }),
  pushed: channel("ps:shelf", header, { doc: "fills and purges" }),
  tagged: channel("ps:shelf:tagged", taggedFrame, { doc: "fills and purges without times" }),
});

const timed = messages(header, {
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

const lock = { key: (uid: string) => keys.lock({ uid }), owner: (uid: string) => keys.owner({ uid }) };
const redis = { key: (uid: string) => keys.value({ uid }), ttl: 600 };
const shapes = {
  "with a value in Redis": { lock, redis, channel: { name: keys.pushed(), frames: timed } },
  "without a value in Redis": { lock, channel: { name: keys.pushed(), frames: timed } },
  "with frames that carry no time": { lock, channel: { name: keys.tagged(), frames: untimed } },
} satisfies Record<string, Partial<CachePlan<Title>>>;

/** The source that all processes share: rows, and how it was read. */
class Shelf {
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

interface Process {
  readonly ctx: KernelContext & { readonly alerts: AlertRecorder };
  readonly caches: LayeredCaches;
  readonly cache: LayeredCache<Title>;
}

let context: TestContext;
let shelf: Shelf;
let opened: LayeredCaches[] = [];
const folder = mkdtempSync(join(tmpdir(), "carillon-cache-"));

beforeAll(async () => {
  context = await openTestContext();
});
afterAll(async () => {
  await context.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await context.flush();
  shelf = new Shelf();
});
afterEach(async () => {
  for (const caches of opened) await caches.close();
  opened = [];
});

async function start(
  plan: Partial<CachePlan<Title>> = shapes["with a value in Redis"],
  options: { directory?: string; overrides?: Partial<KernelContext> } = {},
): Promise<Process> {
  const ctx = context.process(options.overrides);
  const caches = new LayeredCaches(ctx, { directory: options.directory });
  opened.push(caches);
  const cache = await caches.open<Title>({ name: "shelf", codec: title, ttl: 600, source: shelf.read, ...plan });
  return { ctx, caches, cache };
}

const callsOf = async (command: string) =>
  Number(
    new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await context.redis.commands.info("commandstats"))?.[1] ?? 0,
  );

/** A filler elsewhere takes the lock and never comes back. */
async function deadFiller(uid: string): Promise<void> {
  await context.redis.run(takeFillLocks, [keys.lock({ uid }), keys.owner({ uid })], ["gone", 3000]);
}

describe("reading through the layers", () => {
  it("asks the source once, then answers from memory, and from Redis after memory is lost", async () => {
    shelf.rows.set("a", "first");
    const { cache, caches } = await start();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(await cache.get("a")).toEqual({ title: "first" });
    await caches.caughtUp();
    cache.evict();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(shelf.calls).toEqual([["a"]]);
    expect(cache.reads).toMatchObject({ memory: 1, redis: 1, source: 1 });
    expect(await context.redis.commands.ttl(keys.value({ uid: "a" }))).toBeGreaterThan(590);
    expect(await context.redis.commands.exists(keys.lock({ uid: "a" }), keys.owner({ uid: "a" }))).toBe(0);
  });

  it("pushes what one process read to all others, which then ask nobody", async () => {
    shelf.rows.set("a", "first");
    const [one, two] = [
      await start(shapes["without a value in Redis"]),
      await start(shapes["without a value in Redis"]),
    ];
    await one.cache.get("a");
    await eventually(() => two.cache.peek("a"));
    expect(await two.cache.get("a")).toEqual({ title: "first" });
    expect(shelf.calls.length).toBe(1);
  });

  it("reads a batch with one MGET and one source call for all misses, in the order asked", async () => {
    for (const id of ["a", "b", "c", "d"]) shelf.rows.set(id, id);
    const { cache } = await start();
    await cache.get("a");
    await context.redis.commands.set(keys.value({ uid: "b" }), title.encode({ title: "b" }), "PX", 60_000);
    const before = await callsOf("mget");
    const found = await cache.getMany(["d", "a", "b", "nowhere", "c", "d"]);
    expect([...found]).toEqual(["d", "a", "b", "c"].map((id) => [id, { title: id }]));
    expect(shelf.calls).toEqual([["a"], ["d", "nowhere", "c"]]);
    expect((await callsOf("mget")) - before).toBe(1);
  });

  it("answers all who ask for one id at a time with one lookup", async () => {
    shelf.rows.set("a", "first");
    const { cache } = await start();
    const answers = await Promise.all(Array.from({ length: 100 }, () => cache.get("a")));
    expect(new Set(answers.map((answer) => answer?.title))).toEqual(new Set(["first"]));
    expect(shelf.calls).toEqual([["a"]]);
  });

  it("forgets local values after their time, and treats what Redis holds in another shape as a miss", async () => {
    shelf.rows.set("a", "first");
    const { cache, ctx } = await start({ ...shapes["with a value in Redis"], ttl: 60 });
    await cache.get("a");
    await context.clock.advance(61);
    expect(cache.peek("a")).toBeUndefined();
    await context.redis.commands.set(keys.value({ uid: "a" }), "not json", "PX", 60_000);
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(ctx.alerts.identifiers()).toEqual(["cache:malformed:shelf"]);
  });

  it("caches no absence, unless the family has a value for it", async () => {
    const { cache } = await start();
    expect(await cache.get("a")).toBeUndefined();
    expect(await cache.get("a")).toBeUndefined();
    expect(shelf.calls.length).toBe(2);
    const negative = await start({ ...shapes["with a value in Redis"], name: "negative", absent: { title: "" } });
    expect(await negative.cache.get("b")).toEqual({ title: "" });
    expect(await negative.cache.get("b")).toEqual({ title: "" });
    expect(shelf.calls.length).toBe(3);
  });

  it("gives a failed source's error to those who asked, and the lock back to the next", async () => {
    shelf.rows.set("a", "first");
    let broken = true;
    const { cache } = await start({
      ...shapes["with a value in Redis"],
      source: (ids) => (broken ? Promise.reject(new Error("source is down")) : shelf.read(ids)),
    });
    await expect(cache.getMany(["a", "b"])).rejects.toThrow("source is down");
    broken = false;
    expect(await cache.get("a")).toEqual({ title: "first" });
  });

  it("works without lock and channel, as provider keys need it", async () => {
    shelf.rows.set("a", "first");
    const { cache } = await start({ redis });
    expect(await cache.get("a")).toEqual({ title: "first" });
    cache.evict();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(shelf.calls.length).toBe(1);
    await cache.purge("a");
    shelf.rows.set("a", "second");
    expect(await cache.get("a")).toEqual({ title: "second" });
  });

  it("refuses a plan whose waiters could never hear of the fill", async () => {
    await expect(start({ lock })).rejects.toThrow(/no channel/);
  });
});

describe.each(Object.entries(shapes))("a family %s", (_name, plan) => {
  it("reads the source once for misses in many processes at a time", async () => {
    for (let round = 0; round < 10; round++) shelf.rows.set(`a${round}`, "first");
    const processes = await Promise.all(Array.from({ length: 4 }, () => start(plan)));
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        processes.flatMap(({ cache }) => Array.from({ length: 25 }, () => cache.get(`a${round}`))),
      );
      expect(answers.every((answer) => answer?.title === "first")).toBe(true);
      expect(shelf.calls.length).toBe(round + 1);
    }
  });

  it("never brings a purged value back when its filler was slow", async () => {
    shelf.rows.set("a", "old");
    const [slow, other] = [await start(plan), await start(plan)];
    shelf.stall();
    const early = slow.cache.get("a");
    await eventually(() => shelf.calls.length === 1);
    shelf.release();
    shelf.rows.set("a", "new");
    // The source has answered the slow filler by now, but its value is fenced off before it can be published.
    shelf.stall();
    await other.cache.purge("a");
    shelf.release();
    expect(await other.cache.get("a")).toEqual({ title: "new" });
    await early;
    for (const { cache } of [slow, other]) {
      expect(await cache.get("a")).toEqual({ title: "new" });
      cache.evict();
      expect(await cache.get("a")).toEqual({ title: "new" });
    }
  });

  it("does not answer a reader after a purge with a lookup from before it", async () => {
    shelf.rows.set("a", "old");
    const { cache } = await start(plan);
    shelf.stall();
    const early = cache.get("a");
    await eventually(() => shelf.calls.length === 1);
    shelf.rows.set("a", "new");
    await cache.purge("a");
    const late = cache.get("a");
    await eventually(() => shelf.calls.length === 2);
    shelf.release();
    expect(await late).toEqual({ title: "new" });
    expect((await early)?.title).toMatch(/old|new/);
    expect(await cache.get("a")).toEqual({ title: "new" });
  });

  it("wakes those who wait when the source has nothing, without any time passing", async () => {
    const [one, two] = [await start(plan), await start(plan)];
    shelf.stall();
    const first = one.cache.get("a");
    await eventually(() => shelf.calls.length === 1);
    const second = two.cache.get("a");
    await eventually(() => context.clock.sleeping > 0);
    shelf.release();
    expect(await first).toBeUndefined();
    expect(await second).toBeUndefined();
  });

  it("loses at most 3 s to a filler that died, and fills for everyone then", async () => {
    shelf.rows.set("a", "first");
    const [one, two] = [await start(plan), await start(plan)];
    await deadFiller("a");
    const sleeping = context.clock.sleeping;
    const started = context.clock.monotonic();
    const answers = Promise.all([one.cache.get("a"), two.cache.get("a")]);
    await eventually(() => context.clock.sleeping === sleeping + 2);
    expect(shelf.calls.length).toBe(0);
    await context.clock.advance(3);
    expect(await answers).toEqual([{ title: "first" }, { title: "first" }]);
    expect(context.clock.monotonic() - started).toBeLessThanOrEqual(3);
    expect(shelf.calls.length).toBeLessThanOrEqual(2);
  });

  it("holds the newest value everywhere after any mix of reads, changes and slow fills", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ step: fc.constantFrom("get", "get", "change", "stall", "release", "push"), at: fc.nat(2) }),
          { minLength: 4, maxLength: 14 },
        ),
        async (steps) => {
          await context.flush();
          shelf = new Shelf();
          shelf.rows.set("a", "0");
          const processes = [await start(plan), await start(plan), await start(plan)];
          const pending: Promise<unknown>[] = [];
          for (const [index, { step, at }] of steps.entries()) {
            const { cache } = processes[at]!;
            if (step === "get") pending.push(cache.get("a"));
            else if (step === "stall") shelf.stall();
            else if (step === "release") shelf.release();
            else {
              shelf.rows.set("a", String(index + 1));
              if (step === "change") await cache.purge("a");
              else await cache.push(new Map([["a", { title: String(index + 1) }]]));
            }
            await new Promise(setImmediate);
          }
          shelf.release();
          await Promise.all(pending);
          for (const { caches, cache } of processes) {
            await caches.caughtUp();
            expect((await cache.get("a"))?.title).toBe(shelf.rows.get("a"));
            await caches.close();
          }
        },
      ),
      { numRuns: 25, timeout: 10_000 },
    );
  });
});

describe("waiting for another filler", () => {
  it("reads the source for itself when the filler outlives the patience, and publishes nothing", async () => {
    shelf.rows.set("a", "first");
    const plan = shapes["without a value in Redis"];
    const [one, two] = [await start(plan), await start(plan)];
    await deadFiller("a");
    const sleeping = context.clock.sleeping;
    const answer = one.cache.get("a");
    await eventually(() => context.clock.sleeping === sleeping + 1);
    // The lock is taken over again and again, so it never ends.
    await context.redis.commands.pexpire(keys.lock({ uid: "a" }), 60_000);
    await context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(one.ctx.alerts.identifiers()).toEqual(["cache:fill_timeout:shelf"]);
    await two.caches.caughtUp();
    expect(two.cache.peek("a")).toBeUndefined();
    expect(await context.redis.commands.get(keys.owner({ uid: "a" }))).toBeNull();
    expect(await context.redis.commands.get(keys.lock({ uid: "a" }))).toBe("1");
  });

  it("pays for a lost fill frame with one more source read", async () => {
    shelf.rows.set("a", "first");
    const { cache } = await start(shapes["without a value in Redis"]);
    await deadFiller("a");
    const sleeping = context.clock.sleeping;
    const answer = cache.get("a");
    await eventually(() => context.clock.sleeping === sleeping + 1);
    // The filler has finished, but its frame reached nobody.
    await context.redis.commands.del(keys.lock({ uid: "a" }), keys.owner({ uid: "a" }));
    await context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(shelf.calls).toEqual([["a"]]);
  });

  it("gives an immortal lock the usual life, so that it heals itself", async () => {
    shelf.rows.set("a", "first");
    const { cache } = await start();
    await context.redis.commands.set(keys.lock({ uid: "a" }), "1");
    const sleeping = context.clock.sleeping;
    const answer = cache.get("a");
    await eventually(() => context.clock.sleeping === sleeping + 1);
    await context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(await context.redis.commands.exists(keys.lock({ uid: "a" }))).toBe(0);
  });
});

describe("frames", () => {
  const frame = (title_: string | undefined, at: number) =>
    timed.encode(
      title_ === undefined
        ? { kind: "purge", ids: ["a"], minCheckedAt: at }
        : { kind: "fill", id: "a", encoded: Buffer.from(title.encode({ title: title_ })), checkedAt: at },
    );

  it("older than what is held are ignored, whether they fill or purge", async () => {
    const { cache, caches } = await start();
    const now = context.clock.now();
    const publish = async (raw: string | Buffer) => {
      await context.redis.commands.publish(keys.pushed(), raw);
      await caches.caughtUp();
    };
    await publish(frame("newer", now));
    await publish(frame("older", now - 1));
    expect(cache.peek("a")).toEqual({ title: "newer" });
    await publish(frame(undefined, now - 0.5));
    expect(cache.peek("a")).toEqual({ title: "newer" });
    await publish(frame(undefined, now + 0.5));
    expect(cache.peek("a")).toBeUndefined();
    await publish(frame("newer", now));
    expect(cache.peek("a"), "a fill from before the purge").toBeUndefined();
    await publish(frame("newest", now + 1));
    expect(cache.peek("a")).toEqual({ title: "newest" });
  });

  it("that are malformed are dropped with one warning per channel and hour, and the next good one counts", async () => {
    const { cache, caches, ctx } = await start();
    for (const bad of ["", "\0\0\0\xff{}", "\0\0\0\x02{{"])
      await context.redis.commands.publish(keys.pushed(), Buffer.from(bad, "latin1"));
    await caches.caughtUp();
    expect(ctx.alerts.identifiers()).toEqual([`cache:malformed:${keys.pushed()}`]);
    expect(await ctx.metrics.text()).toContain(`carillon_frames_dropped_total{channel="ps:shelf"} 3`);
    await context.clock.advance(3601);
    await context.redis.commands.publish(keys.pushed(), "");
    await context.redis.commands.publish(keys.pushed(), frame("good", context.clock.now()));
    await caches.caughtUp();
    expect(ctx.alerts.recorded.length).toBe(2);
    expect(cache.peek("a")).toEqual({ title: "good" });
  });

  it("push new values to every process and to Redis, and fence off fills that began before", async () => {
    shelf.rows.set("a", "old");
    const [slow, other] = [await start(), await start()];
    shelf.stall();
    const early = slow.cache.get("a");
    await eventually(() => shelf.calls.length === 1);
    shelf.rows.set("a", "new");
    await other.cache.push(new Map([["a", { title: "new" }]]));
    shelf.release();
    await early;
    expect(await slow.cache.get("a")).toEqual({ title: "new" });
    expect(title.decode((await context.redis.commands.getBuffer(keys.value({ uid: "a" })))!)).toEqual({ title: "new" });
    expect(shelf.calls.length).toBe(1);
  });

  it("travel over the server that holds the cache, where that is a second one", async () => {
    shelf.rows.set("a", "first");
    const second = await startTestRedis();
    try {
      const overrides = () => ({ cacheRedis: second.connect(context.clock) });
      const [one, two] = [
        await start(undefined, { overrides: overrides() }),
        await start(undefined, { overrides: overrides() }),
      ];
      await one.cache.get("a");
      await eventually(() => two.cache.peek("a"));
      shelf.rows.set("a", "second");
      await two.cache.purge("a");
      await eventually(() => one.cache.peek("a") === undefined);
      expect(await one.cache.get("a")).toEqual({ title: "second" });
      expect(await context.redis.commands.dbsize()).toBe(0);
    } finally {
      for (const caches of opened.splice(0)) await caches.close();
      await second.close();
    }
  });
});

describe("what may have been missed", () => {
  it("is evicted after the subscriber was away; what cannot change stays", async () => {
    shelf.rows.set("a", "old");
    const { cache, caches, ctx } = await start(shapes["without a value in Redis"], { directory: join(folder, "away") });
    const fixed = await caches.open<Title>({ name: "fixed", codec: title, ttl: 600, tag: "fixed", source: shelf.read });
    await Promise.all([cache.get("a"), fixed.get("a")]);
    let reconnects = 0;
    ctx.subscriber.onReconnect(() => void reconnects++);
    await context.redis.commands.call("CLIENT", "KILL", "TYPE", "pubsub");
    shelf.rows.set("a", "new");
    await context.redis.commands.publish(
      keys.pushed(),
      timed.encode({ kind: "purge", ids: ["a"], minCheckedAt: 1e12 }),
    );
    await eventually(() => reconnects > 0);
    expect(cache.peek("a")).toBeUndefined();
    expect(await cache.get("a")).toEqual({ title: "new" });
    expect(fixed.peek("a")).toEqual({ title: "old" });
  });

  it("is evicted from the disk at the start; what cannot change is there again", async () => {
    shelf.rows.set("a", "old");
    const directory = join(folder, "restart");
    const fixedPlan = { name: "fixed", codec: title, ttl: 600, tag: "fixed", source: shelf.read };
    const before = await start(shapes["without a value in Redis"], { directory });
    const fixed = await before.caches.open<Title>(fixedPlan);
    await Promise.all([before.cache.get("a"), fixed.get("a")]);
    await before.caches.close();
    opened = [];
    const after = await start(shapes["without a value in Redis"], { directory });
    const fixedAfter = await after.caches.open<Title>(fixedPlan);
    expect(after.cache.peek("a")).toBeUndefined();
    expect(fixedAfter.peek("a")).toEqual({ title: "old" });
    await context.clock.advance(601);
    expect(fixedAfter.peek("a")).toBeUndefined();
  });

  it("does not include what memory merely had no room for: the disk still has it", async () => {
    for (let id = 0; id < 50; id++) shelf.rows.set(String(id), `title ${id}`);
    const ids = [...shelf.rows.keys()];
    const { cache } = await start(
      { ...shapes["without a value in Redis"], maxEntries: 5 },
      { directory: join(folder, "small") },
    );
    await cache.getMany(ids);
    expect((await cache.getMany(ids)).size).toBe(50);
    expect(shelf.calls.length).toBe(1);
    expect(cache.reads.disk).toBeGreaterThan(30);
    await cache.purge(ids.slice(0, 10));
    expect(ids.filter((id) => cache.peek(id) === undefined)).toEqual(ids.slice(0, 10));
  });
});

it("a process that dies at any command of a fill leaves a lock that ends, and a fresh process answers right", async () => {
  const deaths = await dieAtEveryCommand(context.server, {
    prepare: async () => {
      await context.flush();
      shelf = new Shelf();
      shelf.rows.set("a", "first");
    },
    life: async (connection) => {
      const { cache } = await start(undefined, { overrides: { redis: connection, cacheRedis: connection } });
      await cache.get("a");
    },
    afterlife: async ({ at, kind }) => {
      const { cache } = await start();
      const sleeping = context.clock.sleeping;
      let answered = false;
      const answer = cache.get("a").finally(() => {
        answered = true;
      });
      await eventually(() => answered || context.clock.sleeping > sleeping);
      if (!answered) await context.clock.advance(3);
      expect(await answer).toEqual({ title: "first" });
      shelf.rows.set("a", `second ${at} ${kind}`);
      await cache.purge("a");
      expect(await cache.get("a")).toEqual({ title: `second ${at} ${kind}` });
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(6);
});
