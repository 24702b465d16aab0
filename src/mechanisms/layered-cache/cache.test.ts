import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { keys, Library, lock, redis, shapes, title } from "./library.fixture.ts";

let library: Library;

beforeAll(async () => {
  library = await Library.open();
});
afterAll(() => library.close());
beforeEach(() => library.reset());
afterEach(() => library.stopAll());

const callsOf = async (command: string) =>
  Number(
    new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(
      await library.context.redis.commands.info("commandstats"),
    )?.[1] ?? 0,
  );

describe("reading through the layers", () => {
  it("asks the source once, then answers from memory, and from Redis after memory is lost", async () => {
    library.shelf.rows.set("a", "first");
    const { cache, caches } = await library.start();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(await cache.get("a")).toEqual({ title: "first" });
    await caches.caughtUp();
    cache.evict();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(library.shelf.calls).toEqual([["a"]]);
    expect(cache.reads).toMatchObject({ memory: 1, redis: 1, source: 1 });
    expect(await library.context.redis.commands.ttl(keys.value({ uid: "a" }))).toBeGreaterThan(590);
    expect(await library.context.redis.commands.exists(keys.lock({ uid: "a" }), keys.owner({ uid: "a" }))).toBe(0);
  });

  it("pushes what one process read to all others, which then ask nobody", async () => {
    library.shelf.rows.set("a", "first");
    const [one, two] = [
      await library.start(shapes["without a value in Redis"]),
      await library.start(shapes["without a value in Redis"]),
    ];
    await one.cache.get("a");
    await eventually(() => two.cache.peek("a"));
    expect(await two.cache.get("a")).toEqual({ title: "first" });
    expect(library.shelf.calls.length).toBe(1);
  });

  it("reads a batch with one MGET and one source call for all misses, in the order asked", async () => {
    for (const id of ["a", "b", "c", "d"]) library.shelf.rows.set(id, id);
    const { cache } = await library.start();
    await cache.get("a");
    await library.context.redis.commands.set(keys.value({ uid: "b" }), title.encode({ title: "b" }), "PX", 60_000);
    const before = await callsOf("mget");
    const found = await cache.getMany(["d", "a", "b", "nowhere", "c", "d"]);
    expect([...found]).toEqual(["d", "a", "b", "c"].map((id) => [id, { title: id }]));
    expect(library.shelf.calls).toEqual([["a"], ["d", "nowhere", "c"]]);
    expect((await callsOf("mget")) - before).toBe(1);
  });

  it("answers all who ask for one id at a time with one lookup", async () => {
    library.shelf.rows.set("a", "first");
    const { cache } = await library.start();
    const answers = await Promise.all(Array.from({ length: 100 }, () => cache.get("a")));
    expect(new Set(answers.map((answer) => answer?.title))).toEqual(new Set(["first"]));
    expect(library.shelf.calls).toEqual([["a"]]);
  });

  it("forgets local values after their time, and treats what Redis holds in another shape as a miss", async () => {
    library.shelf.rows.set("a", "first");
    const { cache, ctx } = await library.start({ ...shapes["with a value in Redis"], ttl: 60 });
    await cache.get("a");
    await library.context.clock.advance(61);
    expect(cache.peek("a")).toBeUndefined();
    await library.context.redis.commands.set(keys.value({ uid: "a" }), "not json", "PX", 60_000);
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(ctx.alerts.identifiers()).toEqual(["cache:malformed:shelf"]);
  });

  it("caches no absence, unless the family has a value for it", async () => {
    const { cache } = await library.start();
    expect(await cache.get("a")).toBeUndefined();
    expect(await cache.get("a")).toBeUndefined();
    expect(library.shelf.calls.length).toBe(2);
    const negative = await library.start({
      ...shapes["with a value in Redis"],
      name: "negative",
      absent: { title: "" },
    });
    expect(await negative.cache.get("b")).toEqual({ title: "" });
    expect(await negative.cache.get("b")).toEqual({ title: "" });
    expect(library.shelf.calls.length).toBe(3);
  });

  it("gives a failed source's error to those who asked, and the lock back to the next", async () => {
    library.shelf.rows.set("a", "first");
    let broken = true;
    const { cache } = await library.start({
      ...shapes["with a value in Redis"],
      source: (ids) => (broken ? Promise.reject(new Error("source is down")) : library.shelf.read(ids)),
    });
    await expect(cache.getMany(["a", "b"])).rejects.toThrow("source is down");
    broken = false;
    expect(await cache.get("a")).toEqual({ title: "first" });
  });

  it("works without lock and channel, as provider keys need it", async () => {
    library.shelf.rows.set("a", "first");
    const { cache } = await library.start({ redis });
    expect(await cache.get("a")).toEqual({ title: "first" });
    cache.evict();
    expect(await cache.get("a")).toEqual({ title: "first" });
    expect(library.shelf.calls.length).toBe(1);
    await cache.purge("a");
    library.shelf.rows.set("a", "second");
    expect(await cache.get("a")).toEqual({ title: "second" });
  });

  it("refuses a plan whose waiters could never hear of the fill", async () => {
    await expect(library.start({ lock })).rejects.toThrow(/no channel/);
  });
});

describe.each(Object.entries(shapes))("a family %s", (_name, plan) => {
  it("reads the source once for misses in many processes at a time", async () => {
    for (let round = 0; round < 10; round++) library.shelf.rows.set(`a${round}`, "first");
    const processes = await Promise.all(Array.from({ length: 4 }, () => library.start(plan)));
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        processes.flatMap(({ cache }) => Array.from({ length: 25 }, () => cache.get(`a${round}`))),
      );
      expect(answers.every((answer) => answer?.title === "first")).toBe(true);
      expect(library.shelf.calls.length).toBe(round + 1);
    }
  });

  it("never brings a purged value back when its filler was slow", async () => {
    library.shelf.rows.set("a", "old");
    const [slow, other] = [await library.start(plan), await library.start(plan)];
    library.shelf.stall();
    const early = slow.cache.get("a");
    await eventually(() => library.shelf.calls.length === 1);
    library.shelf.release();
    library.shelf.rows.set("a", "new");
    // The source has answered the slow filler by now, but its value is fenced off before it can be published.
    library.shelf.stall();
    await other.cache.purge("a");
    library.shelf.release();
    expect(await other.cache.get("a")).toEqual({ title: "new" });
    await early;
    for (const { cache } of [slow, other]) {
      expect(await cache.get("a")).toEqual({ title: "new" });
      cache.evict();
      expect(await cache.get("a")).toEqual({ title: "new" });
    }
  });

  it("does not answer a reader after a purge with a lookup from before it", async () => {
    library.shelf.rows.set("a", "old");
    const { cache } = await library.start(plan);
    library.shelf.stall();
    const early = cache.get("a");
    await eventually(() => library.shelf.calls.length === 1);
    library.shelf.rows.set("a", "new");
    await cache.purge("a");
    const late = cache.get("a");
    await eventually(() => library.shelf.calls.length === 2);
    library.shelf.release();
    expect(await late).toEqual({ title: "new" });
    expect((await early)?.title).toMatch(/old|new/);
    expect(await cache.get("a")).toEqual({ title: "new" });
  });

  it("wakes those who wait when the source has nothing, without any time passing", async () => {
    const [one, two] = [await library.start(plan), await library.start(plan)];
    library.shelf.stall();
    const first = one.cache.get("a");
    await eventually(() => library.shelf.calls.length === 1);
    const second = two.cache.get("a");
    await eventually(() => library.context.clock.sleeping > 0);
    library.shelf.release();
    expect(await first).toBeUndefined();
    expect(await second).toBeUndefined();
  });

  it("loses at most 3 s to a filler that died, and fills for everyone then", async () => {
    library.shelf.rows.set("a", "first");
    const [one, two] = [await library.start(plan), await library.start(plan)];
    await library.deadFiller("a");
    const sleeping = library.context.clock.sleeping;
    const started = library.context.clock.monotonic();
    const answers = Promise.all([one.cache.get("a"), two.cache.get("a")]);
    await eventually(() => library.context.clock.sleeping === sleeping + 2);
    expect(library.shelf.calls.length).toBe(0);
    await library.context.clock.advance(3);
    expect(await answers).toEqual([{ title: "first" }, { title: "first" }]);
    expect(library.context.clock.monotonic() - started).toBeLessThanOrEqual(3);
    expect(library.shelf.calls.length).toBeLessThanOrEqual(2);
  });

  it("holds the newest value everywhere after any mix of reads, changes and slow fills", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ step: fc.constantFrom("get", "get", "change", "stall", "release", "push"), at: fc.nat(2) }),
          { minLength: 4, maxLength: 14 },
        ),
        async (steps) => {
          await library.reset();
          library.shelf.rows.set("a", "0");
          const processes = [await library.start(plan), await library.start(plan), await library.start(plan)];
          const pending: Promise<unknown>[] = [];
          for (const [index, { step, at }] of steps.entries()) {
            const { cache } = processes[at]!;
            if (step === "get") pending.push(cache.get("a"));
            else if (step === "stall") library.shelf.stall();
            else if (step === "release") library.shelf.release();
            else {
              library.shelf.rows.set("a", String(index + 1));
              if (step === "change") await cache.purge("a");
              else await cache.push(new Map([["a", { title: String(index + 1) }]]));
            }
            await new Promise(setImmediate);
          }
          library.shelf.release();
          await Promise.all(pending);
          for (const { caches, cache } of processes) {
            await caches.caughtUp();
            expect((await cache.get("a"))?.title).toBe(library.shelf.rows.get("a"));
            await caches.close();
          }
        },
      ),
      { numRuns: 25, timeout: 10_000 },
    );
  });
});
