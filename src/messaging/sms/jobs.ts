import { createHash } from "node:crypto";
import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { CallbackKwargs } from "./callbacks.ts";
import {
  DEFAULT_FAILURE,
  DEFAULT_SUCCESS,
  handleFailures,
  handleSuccesses,
  sendTest,
  suppressLate,
} from "./defaults.ts";
import { disablePhonesInDev } from "./dev-phones.ts";
import { E164, LONGEST_BODY } from "./entries.ts";
import { keys } from "./keys.ts";
import { reconcileReceipts } from "./reconciliation.ts";
import { recoverReceipts } from "./recovery.ts";
import { BUDGET, sendTexts } from "./send.ts";
import { detectStale } from "./stale.ts";
import { SUPPRESS_UNREACHABLE } from "./verdict.ts";
import { followWishes } from "./wishes.ts";

const NoKwargs = z.strictObject({});
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
type QueueRunner = Runner<typeof NoKwargs>;

export const send: QueueRunner = defineRunner({
  name: "runners.sms.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the texts that wait.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, send, {
      lock: keys.sendLock(),
      queues: [keys.toSend()],
      schedules: [keys.retrying()],
      work: sendTexts,
    });
  },
});

export const receiptStaleDetection: QueueRunner = defineRunner({
  name: "runners.sms.receipt_stale_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Tells the failure jobs of texts that nothing was heard of for too long.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, receiptStaleDetection, { lock: keys.staleLock(), work: detectStale });
  },
});

export const receiptRecovery: QueueRunner = defineRunner({
  name: "runners.sms.receipt_recovery",
  category: 2,
  kwargs: NoKwargs,
  doc: "Asks the provider about texts that nothing was heard of.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, receiptRecovery, {
      lock: keys.recoveryLock(),
      queues: [keys.recovery()],
      work: recoverReceipts,
    });
  },
});

export const receiptReconciliation: QueueRunner = defineRunner({
  name: "runners.sms.receipt_reconciliation",
  category: 2,
  kwargs: NoKwargs,
  doc: "Works news of texts in: updates them, or ends them with their callback.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, receiptReconciliation, {
      lock: keys.reconciliationLock(),
      queues: [keys.event()],
      schedules: [keys.early()],
      work: (run, lock) => reconcileReceipts(run, lock),
    });
  },
});

export const followWishesJob: QueueRunner = defineRunner({
  name: "runners.sms.follow_wishes",
  category: 2,
  kwargs: NoKwargs,
  doc: "Follows the STOP and START that people said by text.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, followWishesJob, { lock: keys.wishesLock(), work: followWishes });
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

export const suppressUnreachableJob = defineRunner({
  name: SUPPRESS_UNREACHABLE,
  category: 2,
  kwargs: z.strictObject({ phone_number: z.string().regex(E164), error_code: z.string() }),
  doc: "Suppresses numbers whose carriers refused a text after it had ended here.",
  retry: CALLBACK_RETRY,
  async runMany(ctx, items) {
    await suppressLate(ctx, items);
    return items.map(() => ({ ok: true }) as const);
  },
});

export const sendTestJob = defineRunner({
  name: "runners.sms.send_test",
  category: 2,
  kwargs: z.strictObject({ phone_number: z.string().regex(E164), body: z.string().min(1).max(LONGEST_BODY) }),
  doc: "Sends one text, to see that texts arrive.",
  async run(ctx, { phone_number, body }) {
    // A worker that died leaves the job to another one; the text goes out once all the same.
    const told = createHash("sha256").update(`${ctx.job.queuedAt} ${phone_number} ${body}`).digest("base64url");
    await sendTest(ctx, { phoneNumber: phone_number, body }, ctx.job.uid ?? `test-${told}`);
  },
});

export const disablePhonesJob = defineRunner({
  name: "runners.sms.disable_phones_in_dev",
  category: 2,
  kwargs: NoKwargs,
  doc: "Where development was declared, not by default: switches off every number that is not a test number.",
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
  followWishesJob,
  defaultFailure,
  defaultSuccess,
  suppressUnreachableJob,
  sendTestJob,
  disablePhonesJob,
];

export const recurring = [
  recur(send, {}, { seconds: [0, 15, 30, 45] }),
  recur(receiptStaleDetection, {}, { seconds: [5] }),
  recur(receiptRecovery, {}, { seconds: [10] }),
  recur(receiptReconciliation, {}, { seconds: [20] }),
  recur(followWishesJob, {}, { seconds: [40] }),
  recur(disablePhonesJob, {}, { hours: [2], minutes: [5], seconds: [0] }),
];
