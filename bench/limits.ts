import { RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible";
import { AlertRecorder } from "../src/kernel/alerts.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { expires, family, integer, member, string, zset } from "../src/kernel/keyspace/index.ts";
import type { RedisConnection } from "../src/kernel/redis/index.ts";
import { attempt, attemptMany, counterLimit, slidingSetLimit } from "../src/mechanisms/rate-limit/index.ts";
import { measure, peerVersion, perSecond, type Row, runBench, temporaryRedis } from "./kit.ts";

/**
 * Our limiter beside rate-limiter-flexible, both on one Redis and through the same client with the same timeouts. The
 * peer gets the mode that is faster for it in each row: without auto-pipelining one after another, with it when many are
 * in flight. Limits are so high that every action passes: the allowed path is the one that every request takes.
 */
const ROUNDS = 7;
/**
 * One after another the two differ by microseconds in a round trip, and the machine's own pace wanders by more than that
 * within seconds: only many short rounds, side by side, meet the same machine.
 */
const SHORT_ROUNDS = 401;
const SHORT_ROUND = 200;
const USERS = 5000;
const LIMIT = 1_000_000_000;
const WINDOW = 600;
type Client = ReturnType<RedisConnection["duplicate"]>;
const PEER = "rate-limiter-flexible";

const keys = family("bench", {
  counter: string("bench:counter:{name}:{user}", integer, { doc: "actions of one user", ttl: expires(WINDOW) }),
  sliding: zset("bench:sliding:{user}", member, { doc: "actions of one user", score: "time", ttl: expires(WINDOW) }),
});

/** `count` calls with `inFlight` of them on their way at any time. */
function rate(count: number, inFlight: number, call: (index: number) => Promise<unknown>): Promise<number> {
  return perSecond(count, async () => {
    let next = 0;
    const lane = async () => {
      while (next < count) await call(next++);
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
  });
}

export async function run(): Promise<readonly Row[]> {
  const server = await temporaryRedis();
  const ctx = { redis: await server.connect(), clock: systemClock, alerts: new AlertRecorder() };
  const prompt = ctx.redis.duplicate({ enableAutoPipelining: false });
  const pipelining = ctx.redis.duplicate({ enableAutoPipelining: true });
  try {
    await Promise.all([prompt.ping(), pipelining.ping()]);
    const rows = await compare(ctx, prompt, pipelining);
    return runBench("limits", "Rate limits beside rate-limiter-flexible", rows, {
      redis: server.version,
      peers: { [PEER]: peerVersion(PEER) },
      notes: [
        "Sliding window: the peer has none; its fixed window, which keeps one number where ours keeps every time, stands in.",
        "Batch: the peer has none; its 500 calls are sent at once and pipelined.",
      ],
    });
  } finally {
    prompt.disconnect();
    pipelining.disconnect();
    await server.close();
  }
}

async function compare(ctx: Parameters<typeof attempt>[0], prompt: Client, pipelining: Client): Promise<Row[]> {
  const fixed = counterLimit({ limit: LIMIT, window: WINDOW, mode: "fixed", reason: "too_many" });
  const sliding = slidingSetLimit({ windows: [{ limit: LIMIT, window: 5 }], reason: "too_many" });
  const peer = (storeClient: Client, keyPrefix: string) =>
    new RateLimiterRedis({ storeClient, keyPrefix, points: LIMIT, duration: WINDOW });
  const peerUnion = (client: Client) =>
    new RateLimiterUnion(peer(client, "second"), peer(client, "minute"), peer(client, "hour"));
  const [oneByOne, unionOneByOne] = [peer(prompt, "fixed"), peerUnion(prompt)];
  const [theirs, union] = [peer(pipelining, "fixed"), peerUnion(pipelining)];

  const user = (index: number) => index % USERS;
  const one = (index: number) => [fixed(keys.counter({ name: "fixed", user: user(index) }))];
  const three = (index: number) =>
    ["second", "minute", "hour"].map((name) => fixed(keys.counter({ name, user: user(index) })));

  const unit = "actions/s";
  return [
    await measure(SHORT_ROUNDS, {
      metric: "fixed window, one after another",
      unit,
      peerName: `${PEER} RateLimiterRedis`,
      ours: () => rate(SHORT_ROUND, 1, (index) => attempt(ctx, one(index))),
      peer: () => rate(SHORT_ROUND, 1, (index) => oneByOne.consume(user(index))),
    }),
    await measure(ROUNDS, {
      metric: "fixed window, 1000 in flight",
      unit,
      peerName: `${PEER} RateLimiterRedis`,
      ours: () => rate(40_000, 1000, (index) => attempt(ctx, one(index))),
      peer: () => rate(40_000, 1000, (index) => theirs.consume(user(index))),
    }),
    await measure(ROUNDS, {
      metric: "sliding window, 1000 in flight",
      unit,
      peerName: `${PEER} RateLimiterRedis (fixed window: it has no sliding one)`,
      ours: () => rate(40_000, 1000, (index) => attempt(ctx, [sliding(keys.sliding({ user: user(index) }))])),
      peer: () => rate(40_000, 1000, (index) => theirs.consume(user(index))),
    }),
    await measure(SHORT_ROUNDS, {
      metric: "three limits for one action, one after another",
      unit,
      peerName: `${PEER} RateLimiterUnion`,
      ours: () => rate(SHORT_ROUND, 1, (index) => attempt(ctx, three(index))),
      peer: () => rate(SHORT_ROUND, 1, (index) => unionOneByOne.consume(user(index))),
    }),
    await measure(ROUNDS, {
      metric: "three limits for one action, 1000 in flight",
      unit,
      peerName: `${PEER} RateLimiterUnion`,
      ours: () => rate(20_000, 1000, (index) => attempt(ctx, three(index))),
      peer: () => rate(20_000, 1000, (index) => union.consume(user(index))),
    }),
    await measure(ROUNDS, {
      metric: "batches of 500 actions",
      unit,
      peerName: `${PEER} RateLimiterRedis, 500 pipelined calls`,
      ours: () =>
        perSecond(40_000, async () => {
          for (let start = 0; start < 40_000; start += 500)
            await attemptMany(
              ctx,
              Array.from({ length: 500 }, (_, index) => one(start + index)),
            );
        }),
      peer: () =>
        perSecond(40_000, async () => {
          for (let start = 0; start < 40_000; start += 500)
            await Promise.all(Array.from({ length: 500 }, (_, index) => theirs.consume(user(start + index))));
        }),
    }),
  ];
}
