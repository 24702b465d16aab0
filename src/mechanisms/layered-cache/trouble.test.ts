import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { startTestRedis } from "../../../test/harness/redis.ts";
import { type MessageHandler, Subscriber } from "../../kernel/redis/index.ts";
import { keys, Library, shapes, type Title, timed, title } from "./library.fixture.ts";

/** Hands messages out late, but in order, as a busy network does. */
class SlowSubscriber extends Subscriber {
  #held: (() => void)[] | undefined;

  get held(): number {
    return this.#held?.length ?? 0;
  }

  hold(): void {
    this.#held = [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const deliver of held) deliver();
  }

  override subscribe(channel: string, handler: MessageHandler): Promise<() => Promise<void>> {
    return super.subscribe(channel, (message, name) => {
      if (this.#held) this.#held.push(() => handler(message, name));
      else handler(message, name);
    });
  }
}

let library: Library;

beforeAll(async () => {
  library = await Library.open();
});
afterAll(() => library.close());
beforeEach(() => library.reset());
afterEach(() => library.stopAll());

describe("waiting for another filler", () => {
  it("reads the source for itself when the filler outlives the patience, and publishes nothing", async () => {
    library.shelf.rows.set("a", "first");
    const plan = shapes["without a value in Redis"];
    const [one, two] = [await library.start(plan), await library.start(plan)];
    await library.deadFiller("a");
    const sleeping = library.context.clock.sleeping;
    const answer = one.cache.get("a");
    await eventually(() => library.context.clock.sleeping === sleeping + 1);
    // The lock is taken over again and again, so it never ends.
    await library.context.redis.commands.pexpire(keys.lock({ uid: "a" }), 60_000);
    await library.context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(one.ctx.alerts.identifiers()).toEqual(["cache:fill_timeout:shelf"]);
    await two.caches.caughtUp();
    expect(two.cache.peek("a")).toBeUndefined();
    expect(await library.context.redis.commands.get(keys.owner({ uid: "a" }))).toBeNull();
    expect(await library.context.redis.commands.get(keys.lock({ uid: "a" }))).toBe("1");
  });

  it("pays for a lost fill frame with one more source read", async () => {
    library.shelf.rows.set("a", "first");
    const { cache } = await library.start(shapes["without a value in Redis"]);
    await library.deadFiller("a");
    const sleeping = library.context.clock.sleeping;
    const answer = cache.get("a");
    await eventually(() => library.context.clock.sleeping === sleeping + 1);
    // The filler has finished, but its frame reached nobody.
    await library.context.redis.commands.del(keys.lock({ uid: "a" }), keys.owner({ uid: "a" }));
    await library.context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(library.shelf.calls).toEqual([["a"]]);
  });

  it("does not read the source when the fill that it missed is still on its way to it", async () => {
    library.shelf.rows.set("a", "first");
    const one = await library.start(shapes["without a value in Redis"]);
    const slow = new SlowSubscriber(one.ctx.redis, library.context.clock);
    const two = await library.start(shapes["without a value in Redis"], { overrides: { subscriber: slow } });
    slow.hold();
    await one.cache.get("a");
    const answer = two.cache.get("a");
    // It has the lock, which the first filler gave back, and now waits for what was said before.
    await eventually(() => slow.held === 2);
    expect(await library.context.redis.commands.exists(keys.lock({ uid: "a" }))).toBe(1);
    slow.release();
    expect(await answer).toEqual({ title: "first" });
    expect(library.shelf.calls).toEqual([["a"]]);
    await eventually(async () => (await library.context.redis.commands.exists(keys.lock({ uid: "a" }))) === 0);
    slow.close();
  });

  it("keeps nothing that a process without a lock was reading while it was purged", async () => {
    library.shelf.rows.set("a", "old");
    const { channel } = shapes["without a value in Redis"];
    const [reader, changer] = [
      await library.start({ channel: { ...channel, pushes: false } }),
      await library.start({ channel: { ...channel, pushes: false } }),
    ];
    library.shelf.stall();
    const early = reader.cache.get("a");
    await eventually(() => library.shelf.calls.length === 1);
    library.shelf.rows.set("a", "new");
    await changer.cache.purge("a");
    await reader.caches.caughtUp();
    library.shelf.release();
    expect(await early).toEqual({ title: "old" });
    expect(reader.cache.peek("a")).toBeUndefined();
    expect(await reader.cache.get("a")).toEqual({ title: "new" });
  });

  it("gives an immortal lock the usual life, so that it heals itself", async () => {
    library.shelf.rows.set("a", "first");
    const { cache } = await library.start();
    await library.context.redis.commands.set(keys.lock({ uid: "a" }), "1");
    const sleeping = library.context.clock.sleeping;
    const answer = cache.get("a");
    await eventually(() => library.context.clock.sleeping === sleeping + 1);
    await library.context.clock.advance(3);
    expect(await answer).toEqual({ title: "first" });
    expect(await library.context.redis.commands.exists(keys.lock({ uid: "a" }))).toBe(0);
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
    const { cache, caches } = await library.start();
    const now = library.context.clock.now();
    const publish = async (raw: string | Buffer) => {
      await library.context.redis.commands.publish(keys.pushed(), raw);
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
    const { cache, caches, ctx } = await library.start();
    for (const bad of ["", "\0\0\0\xff{}", "\0\0\0\x02{{"])
      await library.context.redis.commands.publish(keys.pushed(), Buffer.from(bad, "latin1"));
    await caches.caughtUp();
    expect(ctx.alerts.identifiers()).toEqual([`cache:malformed:${keys.pushed()}`]);
    expect(await ctx.metrics.text()).toContain(`carillon_frames_dropped_total{channel="ps:shelf"} 3`);
    await library.context.clock.advance(3601);
    await library.context.redis.commands.publish(keys.pushed(), "");
    await library.context.redis.commands.publish(keys.pushed(), frame("good", library.context.clock.now()));
    await caches.caughtUp();
    expect(ctx.alerts.recorded.length).toBe(2);
    expect(cache.peek("a")).toEqual({ title: "good" });
  });

  it("push new values to every process and to Redis, and fence off fills that began before", async () => {
    library.shelf.rows.set("a", "old");
    const [slow, other] = [await library.start(), await library.start()];
    library.shelf.stall();
    const early = slow.cache.get("a");
    await eventually(() => library.shelf.calls.length === 1);
    library.shelf.rows.set("a", "new");
    await other.cache.push(new Map([["a", { title: "new" }]]));
    library.shelf.release();
    await early;
    expect(await slow.cache.get("a")).toEqual({ title: "new" });
    expect(title.decode((await library.context.redis.commands.getBuffer(keys.value({ uid: "a" })))!)).toEqual({
      title: "new",
    });
    expect(library.shelf.calls.length).toBe(1);
  });

  it("travel over the server that holds the cache, where that is a second one", async () => {
    library.shelf.rows.set("a", "first");
    const second = await startTestRedis();
    try {
      const overrides = () => ({ cacheRedis: second.connect(library.context.clock) });
      const [one, two] = [
        await library.start(undefined, { overrides: overrides() }),
        await library.start(undefined, { overrides: overrides() }),
      ];
      await one.cache.get("a");
      await eventually(() => two.cache.peek("a"));
      library.shelf.rows.set("a", "second");
      await two.cache.purge("a");
      await eventually(() => one.cache.peek("a") === undefined);
      expect(await one.cache.get("a")).toEqual({ title: "second" });
      expect(await library.context.redis.commands.dbsize()).toBe(0);
    } finally {
      await library.stopAll();
      await second.close();
    }
  });
});

describe("what may have been missed", () => {
  it("is evicted after the subscriber was away; what cannot change stays", async () => {
    library.shelf.rows.set("a", "old");
    const { cache, caches, ctx } = await library.start(shapes["without a value in Redis"], {
      directory: join(library.folder, "away"),
    });
    const fixed = await caches.open<Title>({
      name: "fixed",
      codec: title,
      ttl: 600,
      tag: "fixed",
      source: library.shelf.read,
    });
    await Promise.all([cache.get("a"), fixed.get("a")]);
    let reconnects = 0;
    ctx.subscriber.onReconnect(() => void reconnects++);
    await library.context.redis.commands.call("CLIENT", "KILL", "TYPE", "pubsub");
    library.shelf.rows.set("a", "new");
    await library.context.redis.commands.publish(
      keys.pushed(),
      timed.encode({ kind: "purge", ids: ["a"], minCheckedAt: 1e12 }),
    );
    await eventually(() => reconnects > 0);
    expect(cache.peek("a")).toBeUndefined();
    expect(await cache.get("a")).toEqual({ title: "new" });
    expect(fixed.peek("a")).toEqual({ title: "old" });
  });

  it("is evicted from the disk at the start; what cannot change is there again", async () => {
    library.shelf.rows.set("a", "old");
    const directory = join(library.folder, "restart");
    const fixedPlan = { name: "fixed", codec: title, ttl: 600, tag: "fixed", source: library.shelf.read };
    const before = await library.start(shapes["without a value in Redis"], { directory });
    const fixed = await before.caches.open<Title>(fixedPlan);
    await Promise.all([before.cache.get("a"), fixed.get("a")]);
    await library.stopAll();
    const after = await library.start(shapes["without a value in Redis"], { directory });
    const fixedAfter = await after.caches.open<Title>(fixedPlan);
    expect(after.cache.peek("a")).toBeUndefined();
    expect(fixedAfter.peek("a")).toEqual({ title: "old" });
    await library.context.clock.advance(601);
    expect(fixedAfter.peek("a")).toBeUndefined();
  });

  it("does not include what memory merely had no room for: the disk still has it", async () => {
    for (let id = 0; id < 50; id++) library.shelf.rows.set(String(id), `title ${id}`);
    const ids = [...library.shelf.rows.keys()];
    const { cache } = await library.start(
      { ...shapes["without a value in Redis"], maxEntries: 5 },
      { directory: join(library.folder, "small") },
    );
    await cache.getMany(ids);
    expect((await cache.getMany(ids)).size).toBe(50);
    expect(library.shelf.calls.length).toBe(1);
    expect(cache.reads.disk).toBeGreaterThan(30);
    await cache.purge(ids.slice(0, 10));
    expect(ids.filter((id) => cache.peek(id) === undefined)).toEqual(ids.slice(0, 10));
  });
});

it("a process that dies at any command of a fill leaves a lock that ends, and a fresh process answers right", async () => {
  const deaths = await dieAtEveryCommand(library.context.server, {
    prepare: async () => {
      await library.reset();
      library.shelf.rows.set("a", "first");
    },
    life: async (connection) => {
      const { cache } = await library.start(undefined, { overrides: { redis: connection, cacheRedis: connection } });
      await cache.get("a");
    },
    afterlife: async ({ at, kind }) => {
      const { cache } = await library.start();
      const sleeping = library.context.clock.sleeping;
      let answered = false;
      const answer = cache.get("a").finally(() => {
        answered = true;
      });
      await eventually(() => answered || library.context.clock.sleeping > sleeping);
      if (!answered) await library.context.clock.advance(3);
      expect(await answer).toEqual({ title: "first" });
      library.shelf.rows.set("a", `second ${at} ${kind}`);
      await cache.purge("a");
      expect(await cache.get("a")).toEqual({ title: `second ${at} ${kind}` });
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(6);
});
