import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { VirtualClock } from "../../kernel/clock.ts";
import { Catalogue, expires, family, list, string, text } from "../../kernel/keyspace/index.ts";
import {
  acquire,
  basicLock,
  delIfMatch,
  forceRelease,
  type Lock,
  Locks,
  listLocks,
  lockErrors,
  lockKeys,
  ownerLock,
  release,
  renew,
  renewToken,
  tokenLock,
} from "./index.ts";

const keys = family("bells", {
  owner: string("bells:send_job:lock", ownerLock, { doc: "the send job", ttl: expires(120), lock: "owner" }),
  basic: string("bells:{uid}:delete:lock", basicLock, { doc: "a deletion", ttl: expires(60), lock: "basic" }),
  token: string("bells:update:lock", tokenLock, { doc: "an update", ttl: expires(300), lock: "token" }),
  tower: list("bells:tower", text, { doc: "not a lock" }),
});
const catalogue = new Catalogue([{ name: "bells", keys: [keys, lockKeys] }]);
const owner = { kind: "owner", wait: "fail" } as const;

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());
beforeEach(() => ctx.flush());

const ttlOf = async (key: string) => Math.round((await ctx.redis.commands.pttl(key)) / 1000);

/** Starts work under a lock and leaves it running until `end` is called. */
async function hold(locks: Locks, key: Parameters<Locks["withLock"]>[0], options: Parameters<Locks["withLock"]>[1]) {
  let end!: () => void;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  let lock: Lock | undefined;
  const work = locks.withLock(key, options, async (given) => {
    lock = given;
    await done;
  });
  work.catch(() => {});
  await eventually(() => lock !== undefined);
  return {
    lock: lock!,
    end: async () => {
      end();
      await work;
    },
  };
}

const never = () => new Promise<boolean>(() => {});

/** Moves time in steps, waiting after each until Redis answered the renewals that became due. */
async function live(seconds: number, step = 10) {
  for (let past = 0; past < seconds; past += step) {
    await ctx.clock.advance(step);
    await ctx.redis.commands.ping();
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    await ctx.redis.commands.ping();
  }
}

test("an owner-aware lock says who holds it and since when, in canonical JSON with a lease", async () => {
  const held = await hold(new Locks(ctx), keys.owner(), owner);
  const value = ownerLock.decode((await ctx.redis.commands.getBuffer(keys.owner()))!);
  expect(value).toEqual({
    acquired_at: Math.floor(ctx.clock.now()),
    hostname: ctx.hostname,
    lock_id: held.lock.fence.lockId,
  });
  expect(await ttlOf(keys.owner())).toBe(120);
  await held.end();
  expect(await ctx.redis.commands.exists(keys.owner())).toBe(0);
});

test("acquiring answers every code that the state of the lock calls for", async () => {
  const id = "a".repeat(22);
  const value = (host: string, lockId: string, at = 1000) =>
    `{"acquired_at":${at},"hostname":"${host}","lock_id":"${lockId}"}`;
  const attempt = (host: string, lockId: string, now = 1010) =>
    ctx.redis.run(acquire, [keys.owner()], [value(host, lockId, now), host, lockId, String(now), 120_000]);

  expect((await attempt("one", id, 1000)).outcome).toBe("acquired");
  expect((await attempt("one", id)).outcome).toBe("already_held");
  expect(await attempt("two", "b".repeat(22))).toEqual({
    outcome: "other_host",
    age: expect.closeTo(10.5, -1),
    holder: "one",
  });
  expect(await ttlOf(keys.owner())).toBe(120);
  expect((await attempt("one", "b".repeat(22))).outcome).toBe("same_host");
  expect(await ttlOf(keys.owner())).toBe(60);

  await ctx.redis.commands.set(keys.owner(), value("one", id, 1000));
  expect((await attempt("two", "b".repeat(22), 1000 + 21_600)).age).toBe(21_600);
  expect(await ctx.redis.commands.pttl(keys.owner())).toBe(-1);
  expect((await attempt("two", "b".repeat(22), 1001 + 21_600)).outcome).toBe("other_host");
  expect(await ttlOf(keys.owner())).toBe(3600);

  for (const malformed of ["1", "nonsense", '{"hostname":"one"}', "[]"]) {
    await ctx.redis.commands.set(keys.owner(), malformed);
    expect((await attempt("two", id)).outcome).toBe("malformed");
    expect(await ttlOf(keys.owner())).toBe(300);
  }
});

test("renewing and releasing refuse what is stolen, absent or malformed", async () => {
  const ours = "a".repeat(22);
  const key = [keys.owner()] as [string];
  expect(await ctx.redis.run(renew, key, [ours, 120_000])).toEqual({ ok: false, reason: "not_set" });
  expect(await ctx.redis.run(release, key, [ours, "DELETE"])).toEqual({ ok: false, reason: "not_set" });
  await ctx.redis.commands.set(keys.owner(), `{"acquired_at":1,"hostname":"h","lock_id":"other"}`);
  expect(await ctx.redis.run(renew, key, [ours, 120_000])).toEqual({ ok: false, reason: "stolen" });
  expect(await ctx.redis.run(release, key, [ours, "EXPIRE"])).toEqual({ ok: false, reason: "stolen" });
  expect(await ctx.redis.commands.pttl(keys.owner())).toBe(-1);
  await ctx.redis.commands.set(keys.owner(), "nonsense");
  expect(await ctx.redis.run(release, key, [ours, "DELETE"])).toEqual({ ok: false, reason: "malformed" });
  await ctx.redis.commands.set(keys.token(), "theirs");
  expect(await ctx.redis.run(renewToken, [keys.token()], [ours, 1000])).toEqual({ ok: false, reason: "stolen" });
  expect(await ctx.redis.run(delIfMatch, [keys.token()], [ours])).toBe(false);
  expect(await ctx.redis.run(delIfMatch, [keys.token()], ["theirs"])).toBe(true);
});

test("a second process fails at once, and gets the lock when the first is done", async () => {
  const first = await hold(new Locks(ctx), keys.owner(), owner);
  const other = ctx.process();
  await expect(new Locks(other).withLock(keys.owner(), owner, async () => {})).rejects.toSatisfy(
    lockErrors.lock_held.matches,
  );
  await first.end();
  expect(await new Locks(other).withLock(keys.owner(), owner, async (lock) => lock.held)).toBe(true);
});

test("two tasks of one process contend without touching the lock in Redis", async () => {
  const locks = new Locks(ctx);
  const first = await hold(locks, keys.owner(), owner);
  await expect(locks.withLock(keys.owner(), owner, async () => {})).rejects.toSatisfy(lockErrors.lock_held.matches);
  expect(await ttlOf(keys.owner())).toBe(120);
  expect(ctx.alerts.identifiers()).toEqual([]);
  expect(locks.held.map((lock) => lock.key)).toEqual([keys.owner()]);
  await first.end();
  expect(locks.held).toEqual([]);
});

test("a lock is renewed every 30 s for as long as its work takes", async () => {
  const held = await hold(new Locks(ctx), keys.owner(), owner);
  await live(600);
  expect(await ttlOf(keys.owner())).toBeGreaterThanOrEqual(90);
  expect(held.lock.signal.aborted).toBe(false);
  await held.end();
});

test("work under a stolen lock hears of it at the next renewal and leaves the thief's lock alone", async () => {
  const held = await hold(new Locks(ctx), keys.owner(), owner);
  await ctx.redis.commands.set(keys.owner(), `{"acquired_at":1,"hostname":"h","lock_id":"thief"}`, "EX", 100);
  await live(30);
  await eventually(() => held.lock.signal.aborted);
  await held.end();
  expect(await ctx.redis.commands.get(keys.owner())).toContain("thief");
});

test("a basic lock is renewed at a third of its lease, and never deleted once its lease may be over", async () => {
  const key = keys.basic({ uid: "u1" });
  const locks = new Locks(ctx);
  const renewed = await hold(locks, key, { kind: "basic", ttl: 60, wait: "fail" });
  expect(await ctx.redis.commands.get(key)).toBe("1");
  await live(200);
  expect(await ttlOf(key)).toBeGreaterThanOrEqual(40);
  await renewed.end();
  expect(await ctx.redis.commands.exists(key)).toBe(0);

  const fixed = await hold(locks, key, { kind: "basic", ttl: 60, renew: false, wait: "fail" });
  await ctx.clock.advance(48);
  expect(fixed.lock.signal.aborted).toBe(true);
  expect(() => fixed.lock.fence).toThrow(TypeError);
  await fixed.end();
  expect(await ctx.redis.commands.exists(key)).toBe(1);
});

test("a basic lock that vanished is lost, and what another put there stays", async () => {
  const key = keys.basic({ uid: "u2" });
  const held = await hold(new Locks(ctx), key, { kind: "basic", ttl: 60, wait: "fail" });
  await ctx.redis.commands.del(key);
  await live(20);
  await eventually(() => held.lock.signal.aborted);
  await ctx.redis.commands.set(key, "1");
  await held.end();
  expect(await ctx.redis.commands.get(key)).toBe("1");
});

test("a process that stood still past its basic lock's lease does not delete what may be another's", async () => {
  const key = keys.basic({ uid: "u5" });
  let monotonic = 0;
  const standing = { ...ctx.clock, now: () => 1, monotonic: () => monotonic, every: () => () => {}, sleep: never };
  const held = await hold(new Locks(ctx.process({ clock: standing })), key, { kind: "basic", ttl: 60, wait: "fail" });
  monotonic = 48;
  expect(held.lock.signal.aborted).toBe(false);
  await held.end();
  expect(await ctx.redis.commands.get(key)).toBe("1");
});

test("a token lock holds its token, is renewed by it and released by it alone", async () => {
  const held = await hold(new Locks(ctx), keys.token(), { kind: "token", ttl: 300, wait: "fail" });
  expect(await ctx.redis.commands.get(keys.token())).toBe(held.lock.fence.lockId);
  await live(300, 20);
  expect(await ttlOf(keys.token())).toBeGreaterThan(190);
  await held.end();
  expect(await ctx.redis.commands.exists(keys.token())).toBe(0);
});

test("spinning takes the lock as soon as it is free and measures the wait", async () => {
  const held = await hold(new Locks(ctx), keys.owner(), owner);
  const other = ctx.process();
  const spinning = new Locks(other, catalogue).withLock(
    keys.owner(),
    { kind: "owner", wait: "spin" },
    async (lock) => lock.held,
  );
  const before = ctx.clock.sleeping;
  await eventually(() => ctx.clock.sleeping > before);
  await held.end();
  await ctx.clock.advance(0.1);
  expect(await spinning).toBe(true);
  expect(await other.metrics.text()).toContain('carillon_lock_wait_seconds_count{key_pattern="bells:send_job:lock"} 1');
});

test("a spin that times out fails, or goes on without the lock where the caller must answer", async () => {
  await ctx.redis.commands.set(keys.owner(), `{"acquired_at":1,"hostname":"h","lock_id":"theirs"}`, "EX", 100);
  const spin = { kind: "owner", wait: "spin", timeout: 0.25 } as const;
  const outcomes = [
    new Locks(ctx).withLock(keys.owner(), spin, async () => "ran").catch((error) => error.code),
    new Locks(ctx).withLock(keys.owner(), { ...spin, onTimeout: "proceed" }, async (lock) => lock.held),
  ];
  for (let step = 0; step < 4; step++) {
    await eventually(() => ctx.clock.sleeping >= 2 || step === 3);
    await ctx.clock.advance(0.1);
    await ctx.redis.commands.ping();
  }
  expect(await Promise.all(outcomes)).toEqual(["lock_held", false]);
  expect(await ctx.redis.commands.get(keys.owner())).toContain("theirs");
});

test("shutdown lowers held locks to a minute, ends renewal and waiting, and leaves tokens to their successor", async () => {
  const locks = new Locks(ctx);
  const held = [
    await hold(locks, keys.owner(), owner),
    await hold(locks, keys.basic({ uid: "u3" }), { kind: "basic", ttl: 120, wait: "fail" }),
    await hold(locks, keys.token(), { kind: "token", ttl: 300, wait: "fail" }),
  ];
  const waiting = locks.withLock(keys.owner(), { kind: "owner", wait: "spin" }, async () => {});
  const refused = expect(waiting).rejects.toSatisfy(lockErrors.lock_held.matches);
  await locks.shutdown();
  await refused;
  expect(await ttlOf(keys.owner())).toBe(60);
  expect(await ttlOf(keys.basic({ uid: "u3" }))).toBe(60);
  expect(await ttlOf(keys.token())).toBe(300);
  await live(50);
  expect(held[0]!.lock.signal.aborted).toBe(true);
  expect(held[1]!.lock.signal.aborted).toBe(true);
  expect(await ttlOf(keys.owner())).toBe(10);
  for (const one of held) await one.end();
  expect(await ctx.redis.commands.exists(keys.token())).toBe(0);
});

test("the next process of a dead one's slot waits at most 60 s and warns once", async () => {
  await hold(new Locks(ctx.process({ hostname: "jobs-a-1", clock: new VirtualClock() })), keys.owner(), owner);
  const successor = ctx.process({ hostname: "jobs-a-1" });
  const waiting = new Locks(successor).withLock(keys.owner(), { kind: "owner", wait: "spin" }, async () => "in");
  await eventually(async () => (await ttlOf(keys.owner())) <= 60);
  await ctx.clock.advance(59.5);
  expect(await ctx.redis.commands.exists(keys.owner())).toBe(1);
  const settled = waiting.then((result) => result);
  for (let step = 0; step < 10; step++) {
    await ctx.clock.advance(0.1);
    await ctx.redis.commands.ping();
  }
  expect(await settled).toBe("in");
  expect(successor.alerts.identifiers()).toEqual(["lock:same_host"]);
});

test("operators see kind, holder, age and TTL of every lock, and can only release locks", async () => {
  const held = await hold(new Locks(ctx), keys.owner(), owner);
  await ctx.redis.commands.set(keys.basic({ uid: "u4" }), "1", "PX", 60_000);
  await ctx.redis.commands.set(lockKeys.runnerLock({ runner: "stats.rotate:sms" }), "broken", "PX", 60_000);
  await ctx.redis.commands.rpush(keys.tower(), "big ben");
  await ctx.clock.advance(10);
  expect(await listLocks(ctx, catalogue)).toEqual([
    {
      key: "bells:send_job:lock",
      kind: "owner",
      holder: ctx.hostname,
      age: expect.closeTo(10.5, -1),
      ttl: expect.closeTo(110, 0),
      malformed: false,
    },
    {
      key: "bells:u4:delete:lock",
      kind: "basic",
      holder: undefined,
      age: undefined,
      ttl: expect.closeTo(50, 0),
      malformed: false,
    },
    {
      key: "jobs:runner:stats.rotate:sms:lock",
      kind: "owner",
      holder: undefined,
      age: undefined,
      ttl: expect.closeTo(50, 0),
      malformed: true,
    },
  ]);
  await expect(forceRelease(ctx, catalogue, keys.tower())).rejects.toSatisfy(lockErrors.not_a_lock.matches);
  await expect(forceRelease(ctx, catalogue, "nobody:knows")).rejects.toSatisfy(lockErrors.not_a_lock.matches);
  await forceRelease(ctx, catalogue, keys.owner());
  await expect(forceRelease(ctx, catalogue, keys.owner())).rejects.toSatisfy(lockErrors.lock_absent.matches);
  await held.end();
});

test("a lock has at most one holder, whatever two processes do while time passes", async () => {
  const action = fc.record({
    who: fc.constantFrom(0, 1),
    what: fc.constantFrom("acquire", "renew", "release", "lower", "pass" as const),
    seconds: fc.constantFrom(20, 59, 61, 119, 121),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
      await ctx.flush();
      // The model: whose id is in the key and when it ends; each process's latest id.
      let holder: { id: string; ends: number } | undefined;
      const ids = ["", ""];
      let n = 0;
      const key = [keys.owner()] as [string];
      for (const { who, what, seconds } of actions) {
        const now = ctx.clock.now();
        if (holder && holder.ends <= now) holder = undefined;
        const mine = ids[who]!;
        if (what === "pass") await ctx.clock.advance(seconds);
        else if (what === "acquire") {
          const id = String(++n).padStart(22, "x");
          const value = `{"acquired_at":${Math.floor(now)},"hostname":"h${who}","lock_id":"${id}"}`;
          const { outcome, holder: host } = await ctx.redis.run(acquire, key, [
            value,
            `h${who}`,
            id,
            String(now),
            120_000,
          ]);
          expect(outcome === "acquired").toBe(holder === undefined);
          if (outcome === "acquired") {
            holder = { id, ends: now + 120 };
            ids[who] = id;
          } else if (host === `h${who}`) holder = { ...holder!, ends: Math.min(holder!.ends, now + 60) };
        } else if (what === "renew") {
          const answer = await ctx.redis.run(renew, key, [mine, 120_000]);
          expect(answer.ok).toBe(holder?.id === mine);
          if (answer.ok) holder = { id: mine, ends: now + 120 };
        } else {
          const answer = await ctx.redis.run(release, key, [mine, what === "lower" ? "EXPIRE" : "DELETE"]);
          expect(answer.ok).toBe(holder?.id === mine);
          if (answer.ok) holder = what === "lower" ? { id: mine, ends: Math.min(holder!.ends, now + 60) } : undefined;
        }
      }
    }),
    { numRuns: 40 },
  );
});
