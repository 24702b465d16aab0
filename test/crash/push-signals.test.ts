import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { keys } from "../../src/messaging/push/keys.ts";
import { MOST_HELD } from "../../src/messaging/push/line.ts";
import { newPush, openPushHouse, type PushHouse } from "../../src/messaging/push/push.fixture.ts";
import { enqueuePushes } from "../../src/messaging/push/service.ts";
import { pushReceiptStats, pushTicketStats } from "../../src/messaging/push/stats.ts";
import { eventually } from "../harness/facts.ts";

/** A real process sends notifications, gets a real SIGKILL at the worst moments, and another one takes over. */
const program = fileURLToPath(new URL("./push-process.mjs", import.meta.url));
const NUMBER = 100;

let house: PushHouse;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await house.close();
});
beforeEach(async () => {
  await house.reset();
  // The processes live in real time, and what they queue must not lie in the future of the house.
  house.clock.jump(Math.floor(performance.timeOrigin / 1000) - house.clock.now());
});

interface Child {
  readonly said: readonly string[];
  /** Resolves with its exit status. */
  readonly ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

async function startProcess(hold?: "before" | "after"): Promise<Child> {
  const plan = { socket: house.server.server.socketPath, expo: house.sandbox.url, hold };
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data) => said.push(...String(data).trim().split("\n")));
  const ended = new Promise<number | null>((resolve) =>
    child.once("close", (code) => {
      children.delete(child);
      resolve(code);
    }),
  );
  await eventually(() => said.length > 0);
  expect(said[0]).toBe("ready");
  return { said, ended, kill: (signal) => child.kill(signal) };
}

const raw = (key: string) => house.redis.topology.key(key as never);
const start = (job: string) =>
  house.redis.commands.rpush(
    raw(jobKeys.hot()),
    JSON.stringify({ name: `runners.push.${job}`, kwargs: {}, queued_at: 1 }),
  );
const dailyCounts = async (family: typeof pushTicketStats | typeof pushReceiptStats) => {
  const [today, yesterday] = await Promise.all([house.counts(family as never), house.counts(family as never, 1)]);
  return { ...yesterday, ...today };
};

async function queueNotifications(count = NUMBER): Promise<readonly string[]> {
  const pushes = Array.from({ length: count }, (_, at) =>
    newPush(`n${at}`, { successJob: { name: "runners.test.success", kwargs: { who: at } } }),
  );
  const queued = await enqueuePushes(house.main.ctx, pushes);
  await house.redis.commands.del(raw(jobKeys.hot()));
  return queued.ok ? queued.uids : [];
}

/** Kills a process while it holds its batch, lets the lease of its lock pass, and has another one go on. */
async function killAndTakeOver(hold: "before" | "after"): Promise<{ uids: readonly string[]; heir: Child }> {
  const uids = await queueNotifications();
  const victim = await startProcess(hold);
  await start("send");
  await eventually(() => victim.said.includes("holding"));
  victim.kill("SIGKILL");
  await victim.ended;
  const held = await house.redis.commands.lrange(raw(keys.sendPurgatory()), 0, -1);
  expect(held.map((entry) => JSON.parse(entry).uid)).toEqual(uids);
  const left = await house.redis.commands.pttl(raw(keys.sendLock()));
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(120_000);
  await house.redis.commands.pexpire(raw(keys.sendLock()), 1);
  const heir = await startProcess();
  await start("send");
  await eventually(async () => (await house.length(keys.cold())) === NUMBER);
  return { uids, heir };
}

/** Has the receipts come, and the callbacks run. */
async function finish(heir: Child): Promise<void> {
  await house.clock.advance(10);
  await start("ticket_hot_to_cold");
  await eventually(async () => (await house.length(keys.hot())) === NUMBER);
  await start("check");
  await eventually(async () => (await house.redis.commands.hlen("test:succeeded")) === NUMBER);
  heir.kill("SIGTERM");
  await heir.ended;
  expect(new Set(await house.redis.commands.hvals("test:succeeded"))).toEqual(new Set(["1"]));
  expect(await dailyCounts(pushTicketStats)).toEqual({ queued: NUMBER, succeeded: NUMBER });
  expect(await dailyCounts(pushReceiptStats)).toEqual({ succeeded: NUMBER });
  expect(await house.violations()).toEqual([]);
}

test("a sender that gets SIGKILL after it claimed and before its request: all are sent once, with one warning", async () => {
  const { heir } = await killAndTakeOver("before");
  const sent = house.sandbox.inbox.all().map(({ to }) => to);
  expect([sent.length, new Set(sent).size]).toEqual([NUMBER, NUMBER]);
  expect(heir.said.filter((line) => line.includes("recovering"))).toEqual(["warning runners.push.send:recovering"]);
  await finish(heir);
}, 40_000);

test("a sender that gets SIGKILL after the provider took its batch: sent twice, counted and told of once", async () => {
  const { heir } = await killAndTakeOver("after");
  const sent = house.sandbox.inbox.all().map(({ to }) => to);
  expect([sent.length, new Set(sent).size]).toEqual([2 * NUMBER, NUMBER]);
  await finish(heir);
}, 40_000);

test("a sender that gets SIGTERM amid its requests waits for them, settles them, and leaves the rest in order", async () => {
  const uids = [...(await queueNotifications(500)), ...(await queueNotifications(200))];
  house.sandbox.knobs.patch({ expo: { latencyMs: 1000 } });
  const child = await startProcess();
  await start("send");
  // All requests of the first batch wait for the provider, whose clock stands still.
  await eventually(async () => (await house.length(keys.sendPurgatory())) === MOST_HELD);
  child.kill("SIGTERM");
  let ended = false;
  void child.ended.then(() => {
    ended = true;
  });
  await eventually(async () => {
    await house.clock.advance(1);
    return ended;
  });
  expect(await child.ended).toBe(0);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  const cold = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1");
  const waiting = await house.redis.commands.lrange(raw(keys.toSend()), 0, -1);
  const uidOf = (entry: string) => JSON.parse(entry).uid as string;
  expect(new Set([...cold, ...waiting].map(uidOf))).toEqual(new Set(uids));
  expect(waiting.map(uidOf)).toEqual(uids.slice(cold.length));
  expect(house.sandbox.inbox.all()).toHaveLength(cold.length);
  expect(await house.redis.commands.exists(raw(keys.sendLock()))).toBe(0);
  const report = await house.redis.commands.hgetall(raw(keys.sendReport()));
  expect(report).toMatchObject({ last_stop_reason: "signal", last_num_succeeded: String(cold.length) });
}, 40_000);
