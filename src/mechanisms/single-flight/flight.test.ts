import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { binary, type Codec, expires, family, string, text } from "../../kernel/keyspace/index.ts";
import { SingleFlight, singleFlightErrors } from "./index.ts";

const keys = family("picture", {
  of: string("picture:{sub}", text, { doc: "where a user's picture is", ttl: expires(900) }),
});
const key = keys.of({ sub: "s" });

let context: TestContext;
let fetches: number;
let source: string | undefined;
let gate: Promise<void> | undefined;

beforeAll(async () => {
  context = await openTestContext();
});
afterAll(() => context.close());
beforeEach(async () => {
  await context.flush();
  fetches = 0;
  source = "here";
  gate = undefined;
});

/** A process of its own, as far as the mechanism can tell. */
function instance(overrides: Parameters<TestContext["process"]>[0] = {}): SingleFlight<string> {
  return new SingleFlight(context.process(overrides), {
    key: (sub) => keys.of({ sub }),
    codec: text,
    ttl: 900,
    fetch: async () => {
      fetches += 1;
      const found = source;
      await gate;
      return found;
    },
  });
}

function stall(): () => void {
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

describe("a single-flight value", () => {
  it("is fetched by one instance while the others wait, and kept for its time", async () => {
    const release = stall();
    const answers = Promise.all(Array.from({ length: 5 }, () => instance().get("s")));
    await eventually(() => fetches === 1 && context.clock.sleeping === 4);
    expect(await context.redis.commands.get(key)).toBe("1");
    expect(await context.redis.commands.ttl(key)).toBeLessThanOrEqual(10);
    release();
    await eventually(async () => (await context.redis.commands.get(key)) === "here");
    await context.clock.advance(0.1);
    expect(await answers).toEqual(Array.from({ length: 5 }, () => "here"));
    expect(fetches).toBe(1);
    expect(await context.redis.commands.ttl(key)).toBeGreaterThan(890);
    expect(await instance().get("s")).toBe("here");
    expect(fetches).toBe(1);
  });

  it("is looked up once for all who ask in one process", async () => {
    const one = instance();
    await Promise.all([one.get("s"), one.get("s"), one.get("s")]);
    expect(fetches).toBe(1);
  });

  it("is polled after 0.1, 0.2, 0.4 and then every 1 s", async () => {
    await context.redis.commands.set(key, "1", "EX", 600);
    const polls: number[] = [];
    const started = context.clock.monotonic();
    const ctx = context.process();
    const sleep = ctx.clock.sleep.bind(ctx.clock);
    const watched = new SingleFlight(
      {
        ...ctx,
        cacheRedis: ctx.cacheRedis,
        clock: {
          ...ctx.clock,
          now: () => ctx.clock.now(),
          monotonic: () => ctx.clock.monotonic(),
          every: ctx.clock.every.bind(ctx.clock),
          sleep: (seconds, signal) => {
            polls.push(seconds);
            return sleep(seconds, signal);
          },
        },
      },
      { key: (sub) => keys.of({ sub }), codec: text, ttl: 900, fetch: async () => "own" },
    );
    const answer = watched.get("s");
    for (let poll = 1; poll <= 15; poll++) {
      await eventually(() => polls.length === poll);
      await context.clock.advance(polls.at(-1)!);
    }
    expect(await answer).toBe("own");
    expect(polls.slice(0, 5)).toEqual([0.1, 0.2, 0.4, 1, 1]);
    expect(polls.slice(3, -1).every((seconds) => seconds === 1)).toBe(true);
    expect(context.clock.monotonic() - started).toBeCloseTo(12, 6);
    expect(await context.redis.commands.get(key), "nobody but the fetcher writes").toBe("1");
  });

  it("is fetched by the next who looks once a dead fetcher's marker has expired", async () => {
    await context.redis.commands.set(key, "1", "EX", 10);
    const answer = instance().get("s");
    let done = false;
    void answer.then(() => {
      done = true;
    });
    const started = context.clock.monotonic();
    while (!done) {
      await eventually(() => done || context.clock.sleeping > 0);
      if (!done) await context.clock.advance(0.1);
    }
    expect(await answer).toBe("here");
    expect(context.clock.monotonic() - started).toBeLessThan(12);
    expect(await context.redis.commands.get(key)).toBe("here");
  });

  it("leaves no key when the source has none, and the next who asks looks again", async () => {
    source = undefined;
    expect(await instance().get("s")).toBeUndefined();
    expect(await context.redis.commands.exists(key)).toBe(0);
    source = "here";
    expect(await instance().get("s")).toBe("here");
  });

  it("is given up by a fetcher that failed, but never when another has written meanwhile", async () => {
    const failing = (meanwhile?: string) =>
      new SingleFlight<string>(context.process(), {
        key: (sub) => keys.of({ sub }),
        codec: text,
        ttl: 900,
        fetch: async () => {
          if (meanwhile) await context.redis.commands.set(key, meanwhile);
          throw new Error("source is down");
        },
      });
    await expect(failing().get("s")).rejects.toThrow("source is down");
    expect(await context.redis.commands.exists(key)).toBe(0);
    await expect(failing("other").get("s")).rejects.toThrow("source is down");
    expect(await context.redis.commands.get(key)).toBe("other");
  });

  it("is refused when it is the text 1, whatever its codec, and leaves nothing behind", async () => {
    for (const [codec, value] of [
      [text, "1"],
      [binary, Buffer.from("1")],
    ] as [Codec<unknown>, unknown][]) {
      const refused = new SingleFlight<unknown>(context.process(), {
        key: (sub) => keys.of({ sub }),
        codec,
        ttl: 900,
        fetch: async () => value,
      });
      await expect(refused.get("s")).rejects.toSatisfy(singleFlightErrors.reserved_value.matches);
      expect(await context.redis.commands.exists(key)).toBe(0);
    }
  });

  it("comes back byte for byte, and is fetched anew after it was forgotten", async () => {
    const bytes = Buffer.from([0, 0xff, 0x31, 0x80]);
    const make = () =>
      new SingleFlight<Buffer>(context.process(), {
        key: (sub) => keys.of({ sub }),
        codec: binary,
        ttl: 900,
        fetch: async () => bytes,
      });
    await make().get("s");
    expect(await make().get("s")).toEqual(bytes);
    await instance().forget("s");
    expect(await instance().get("s")).toBe("here");
  });

  it("survives a fetcher that dies at any command: the next instance answers within 12 s", async () => {
    const deaths = await dieAtEveryCommand(context.server, {
      prepare: () => context.flush(),
      life: async (connection) => void (await instance({ redis: connection, cacheRedis: connection }).get("s")),
      afterlife: async () => {
        let done = false;
        const answer = instance()
          .get("s")
          .finally(() => {
            done = true;
          });
        const started = context.clock.monotonic();
        while (!done) {
          await eventually(() => done || context.clock.sleeping > 0);
          if (!done) await context.clock.advance(1);
        }
        expect(await answer).toBe("here");
        expect(context.clock.monotonic() - started).toBeLessThanOrEqual(12);
      },
    });
    expect(deaths).toBe(4);
  });
});
