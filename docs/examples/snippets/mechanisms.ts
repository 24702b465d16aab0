import type { Context, JobContext } from "../../../src/jobs/context.ts";
import { randomToken } from "../../../src/kernel/ids.ts";
import { text } from "../../../src/kernel/keyspace/index.ts";
import { callSpaced } from "../../../src/mechanisms/api-spacing/index.ts";
import { guarded } from "../../../src/mechanisms/circuit-breaker/index.ts";
import { pushCapped } from "../../../src/mechanisms/collections/index.ts";
import { decodeDataRaw, encodeDataRaw } from "../../../src/mechanisms/data-raw/index.ts";
import { LayeredCaches } from "../../../src/mechanisms/layered-cache/index.ts";
import { unlessFenced } from "../../../src/mechanisms/lock/index.ts";
import { advanceCursor, markOnce, readCursor } from "../../../src/mechanisms/marker/index.ts";
import { noteSteps } from "../../../src/mechanisms/message-log/index.ts";
import { consume, issue } from "../../../src/mechanisms/one-time-token/index.ts";
import { pendingSet } from "../../../src/mechanisms/pending-set/index.ts";
import { purgatoryQueue, runBatches } from "../../../src/mechanisms/purgatory-queue/index.ts";
import { purgatorySchedule } from "../../../src/mechanisms/purgatory-schedule/index.ts";
import { listQuarantined, requeueQuarantined } from "../../../src/mechanisms/quarantine/index.ts";
import { attempt, counterLimit } from "../../../src/mechanisms/rate-limit/index.ts";
import { startRun } from "../../../src/mechanisms/run-report/index.ts";
import { readSetting, writeSetting } from "../../../src/mechanisms/setting/index.ts";
import { SingleFlight } from "../../../src/mechanisms/single-flight/index.ts";
import { writeBehind } from "../../../src/mechanisms/write-behind/index.ts";
import { keys, letter } from "./keys.ts";

declare function send(letter: { to: string; text: string }): Promise<void>;
declare function ring(person: string): Promise<void>;
declare function askCarrier(signal?: AbortSignal): Promise<string>;
declare function insertViews(rows: readonly { uid: string; at: number }[]): Promise<void>;

export async function lock(ctx: JobContext): Promise<void> {
  await ctx.locks.withLock(keys.lock(), { kind: "owner", wait: "fail" }, async ({ signal, fence }) => {
    while (!signal.aborted) await sendBatch(ctx, fence);
  });
}

const letters = purgatoryQueue({ queue: keys.toSend(), purgatory: keys.sending(), codec: letter });

export async function sendBatch(ctx: JobContext, fence: { key: string; lockId: string }): Promise<void> {
  await runBatches(ctx, {
    runner: "runners.post.send",
    shuttingDown: ctx.shuttingDown,
    exhausted: ctx.budget.exhausted,
    claim: (first) => letters.claimBatch(ctx, fence, first, 100),
    handle: async ({ size }) => {
      const batch = await letters.read(ctx, 0, size);
      for (const { value } of batch) await send(value);
      unlessFenced(await letters.ack(ctx, fence, batch.length));
      return undefined;
    },
  });
}

const wakeUps = purgatorySchedule({ schedule: keys.alarms(), purgatory: keys.ringing(), codec: text });

export async function wake(ctx: JobContext, fence: { key: string; lockId: string }): Promise<void> {
  await wakeUps.add(ctx, [{ value: "ada", dueAt: ctx.clock.now() + 60 }], "LT");
  unlessFenced(await wakeUps.shift(ctx, fence, 100));
  for (const { raw, value } of await wakeUps.read(ctx)) {
    await ring(value);
    await wakeUps.ack(ctx, [raw]);
  }
}

const unanswered = pendingSet({ set: keys.pending(), codec: keys.pendingLetter.codec, version: "version" });

export async function worry(ctx: JobContext): Promise<void> {
  const now = ctx.clock.now();
  await unanswered.add(ctx, [{ member: "crl_l_1", dueAt: now + 600, value: { to: "ada", tries: 1, version: 1 } }]);
  const stale = await unanswered.takeStale(ctx, now + 600);
  if (stale.ok)
    await unanswered.removeIf(
      ctx,
      stale.results.map(({ member, value }) => ({ member, version: value.version })),
    );
}

export async function unreadable(ctx: Context): Promise<void> {
  const [newest] = await listQuarantined(ctx, keys.toSend());
  if (newest)
    await requeueQuarantined(ctx, ctx.catalogue, keys.toSend(), newest.id, { corrected: '{"to":"ada","text":"hi"}' });
}

const visits = counterLimit({ reason: "visits", limit: 60, window: 60, mode: "fixed" });

export async function limited(ctx: Context, sub: string): Promise<number | undefined> {
  const result = await attempt(ctx, [visits(keys.visits({ sub }))]);
  return result.allowed ? undefined : Math.ceil(result.retryAfter);
}

const views = writeBehind({ buffer: keys.views(), codec: keys.views.codec });

export async function flush(ctx: JobContext, fence: { key: string; lockId: string }): Promise<void> {
  await views.append(ctx, [{ uid: "crl_l_1", at: ctx.clock.now() }], { maxLength: 200_000 });
  await views.flush(ctx, fence, {
    runner: "runners.post.flush_views",
    shuttingDown: ctx.shuttingDown,
    exhausted: ctx.budget.exhausted,
    write: insertViews,
  });
}

export async function cached(ctx: Context): Promise<string | undefined> {
  const caches = new LayeredCaches(ctx);
  const rates = await caches.open<string>({
    name: "rates",
    codec: text,
    ttl: 60,
    redis: { key: () => keys.rates(), ttl: 3600 },
    source: async (ids) => new Map(await Promise.all(ids.map(async (id) => [id, await askCarrier()] as const))),
  });
  return rates.get("DE");
}

export async function once(ctx: Context): Promise<string | undefined> {
  const rates = new SingleFlight(ctx, { key: () => keys.rates(), codec: text, ttl: 3600, fetch: () => askCarrier() });
  return rates.get("DE");
}

export async function spaced(ctx: JobContext): Promise<string> {
  const carrier = { name: "carrier", key: keys.slot(), longestInterval: 5 };
  return callSpaced(ctx, carrier, { interval: 5, signal: ctx.signal }, () => askCarrier(ctx.signal));
}

export async function careful(ctx: Context): Promise<string> {
  return guarded(
    ctx,
    { key: keys.errors(), threshold: 10, window: 300 },
    (signal) => askCarrier(signal),
    () => "unknown",
  );
}

export async function remember(ctx: Context, uid: string): Promise<void> {
  await pushCapped(ctx, keys.recent(), [uid], { cap: 100, ttl: 86_400, newest: "left" });
}

export async function parcel(ctx: Context): Promise<string | undefined> {
  const key = (code: string) => keys.code({ code });
  const code = await issue(ctx, { code: randomToken, key, value: "ada", ttl: 600 });
  return (await consume(ctx, key(code)))?.toString();
}

export async function small(ctx: Context): Promise<void> {
  await writeSetting(ctx, keys.greeting, "good morning");
  await readSetting(ctx, keys.greeting);
  const from = await readCursor(ctx, keys.cursor());
  await advanceCursor(ctx, keys.cursor(), from, "crl_l_500");
  const { first } = await markOnce(ctx, keys.opened());
  if (first) ctx.alerts.ops("the office is open");
}

export async function reported(ctx: JobContext): Promise<void> {
  const run = await startRun(ctx, keys.report);
  await run.finish({ stopReason: "list_exhausted", counts: { sent: 12 } });
}

export function story(): unknown {
  const data_raw = encodeDataRaw({ email: { uid: "crl_em_1" }, info: { delivery_received_at: 1_790_000_000.5 } });
  return decodeDataRaw(data_raw);
}

export function tell(ctx: Context, taken: readonly { uid: string; to: string }[]): void {
  noteSteps(
    ctx,
    taken.map(({ uid, to }) => ({ channel: "sms", uid, step: "queued", address: to })),
  );
}
