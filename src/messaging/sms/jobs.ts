import { z } from "zod";
import type { JobContext } from "../../jobs/context.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { CallbackKwargs } from "./callbacks.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS, handleFailures, handleSuccesses, sendTest } from "./defaults.ts";
import { disablePhonesInDev } from "./dev-phones.ts";
import { E164, LONGEST_BODY } from "./entries.ts";
import { keys } from "./keys.ts";
import { nextEarlyNews, reconcileReceipts } from "./reconciliation.ts";
import { recoverReceipts } from "./recovery.ts";
import { BUDGET, sendTexts } from "./send.ts";
import { detectStale } from "./stale.ts";

const NoKwargs = z.strictObject({});
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
type QueueRunner = Runner<typeof NoKwargs>;

/** Runs a job of the line alone, and once more at once for what came while it held its lock. */
async function alone(
  ctx: JobContext,
  runner: QueueRunner,
  plan: { readonly lock: KeyName<"string">; readonly queue?: KeyName<"list">; work(lock: Lock): Promise<string> },
): Promise<void> {
  const stopped = await ctx.locks.withLock(plan.lock, { kind: "owner", wait: "fail" }, plan.work);
  ctx.log.info({ runner: runner.name, stop_reason: stopped }, "run ended");
  if (stopped !== "list_exhausted" || !plan.queue) return;
  if ((await ctx.redis.commands.llen(ctx.redis.topology.key(plan.queue))) > 0) ctx.jobs.nudge(runner, {});
}

export const send: QueueRunner = defineRunner({
  name: "runners.sms.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the texts that wait.",
  budget: BUDGET,
  run: (ctx) => alone(ctx, send, { lock: keys.sendLock(), queue: keys.toSend(), work: (lock) => sendTexts(ctx, lock) }),
});

export const receiptStaleDetection: QueueRunner = defineRunner({
  name: "runners.sms.receipt_stale_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Tells the failure jobs of texts that nothing was heard of for too long.",
  budget: BUDGET,
  run: (ctx) => alone(ctx, receiptStaleDetection, { lock: keys.staleLock(), work: () => detectStale(ctx) }),
});

export const receiptRecovery: QueueRunner = defineRunner({
  name: "runners.sms.receipt_recovery",
  category: 2,
  kwargs: NoKwargs,
  doc: "Asks the provider about texts that nothing was heard of.",
  budget: BUDGET,
  run: (ctx) =>
    alone(ctx, receiptRecovery, {
      lock: keys.recoveryLock(),
      queue: keys.recovery(),
      work: (lock) => recoverReceipts(ctx, lock),
    }),
});

/** By process: when the run is due that early news waits for, so that each process has one such run ahead at most. */
const awaited = new WeakMap<object, number>();

export const receiptReconciliation: QueueRunner = defineRunner({
  name: "runners.sms.receipt_reconciliation",
  category: 2,
  kwargs: NoKwargs,
  doc: "Works news of texts in: updates them, or ends them with their callback.",
  budget: BUDGET,
  async run(ctx) {
    await alone(ctx, receiptReconciliation, {
      lock: keys.reconciliationLock(),
      queue: keys.event(),
      work: (lock) => reconcileReceipts(ctx, lock),
    });
    const due = await nextEarlyNews(ctx);
    const now = ctx.clock.now();
    if (due === undefined || (awaited.get(ctx.jobs) ?? 0) > now) return;
    awaited.set(ctx.jobs, Math.max(due, now + 1));
    await ctx.jobs.enqueue(receiptReconciliation, {}, { delay: Math.max(1, due - now) });
  },
});

export const defaultFailure = defineRunner({
  name: DEFAULT_FAILURE,
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Decides whether a failed text is tried again, and suppresses numbers that cannot be reached.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    handleFailures(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

export const defaultSuccess = defineRunner({
  name: DEFAULT_SUCCESS,
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Notes that a text is on its way.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    handleSuccesses(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

export const sendTestJob = defineRunner({
  name: "runners.sms.send_test",
  category: 2,
  kwargs: z.strictObject({ phone_number: z.string().regex(E164), body: z.string().min(1).max(LONGEST_BODY) }),
  doc: "Sends one text, to see that texts arrive.",
  async run(ctx, { phone_number, body }) {
    await sendTest(ctx, { phoneNumber: phone_number, body });
  },
});

export const disablePhonesJob = defineRunner({
  name: "runners.sms.disable_phones_in_dev",
  category: 2,
  kwargs: NoKwargs,
  doc: "In development only: switches off every number that is not a test number.",
  async run(ctx) {
    const switched = await disablePhonesInDev(ctx);
    if (switched > 0) ctx.log.info({ switched }, "phone numbers switched off, because this is a development system");
  },
});

export const runners = [
  send,
  receiptStaleDetection,
  receiptRecovery,
  receiptReconciliation,
  defaultFailure,
  defaultSuccess,
  sendTestJob,
  disablePhonesJob,
];

export const recurring = [
  recur(send, {}, { seconds: [0, 15, 30, 45] }),
  recur(receiptStaleDetection, {}, { seconds: [5] }),
  recur(receiptRecovery, {}, { seconds: [10] }),
  recur(receiptReconciliation, {}, { seconds: [20] }),
  recur(disablePhonesJob, {}, { hours: [2], minutes: [5], seconds: [0] }),
];
