import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { CallbackKwargs } from "./callbacks.ts";
import { defaultFailures, defaultSuccesses, suppressAbandoned } from "./defaults.ts";
import { MailNews } from "./entries.ts";
import { keys } from "./keys.ts";
import { bringListsBack } from "./paused-lists.ts";
import { ABANDONED_CALLBACK, reconcileReceipts } from "./reconciliation.ts";
import { guardReputation } from "./reputation.ts";
import { BUDGET, sendMails } from "./send.ts";
import { detectStale } from "./stale.ts";
import { sendTest, testFailureHandler, testSuccessHandler } from "./test-mail.ts";

const NoKwargs = z.strictObject({});
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
type QueueRunner = Runner<typeof NoKwargs>;

export const send: QueueRunner = defineRunner({
  name: "runners.emails.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the mails that wait.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, send, {
      lock: keys.sendLock(),
      queues: [keys.toSend(), keys.urgent()],
      schedules: [keys.retrying(), keys.urgentRetrying()],
      work: sendMails,
    });
  },
});

export const receiptReconciliation: QueueRunner = defineRunner({
  name: "runners.emails.receipt_reconciliation",
  category: 2,
  kwargs: NoKwargs,
  doc: "Works news of mails in: deliveries, bounces and complaints end in callbacks.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, receiptReconciliation, {
      lock: keys.reconciliationLock(),
      queues: [keys.event()],
      schedules: [keys.early()],
      work: reconcileReceipts,
    });
  },
});

export const staleReceiptDetection: QueueRunner = defineRunner({
  name: "runners.emails.stale_receipt_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Gives up on mails whose receipt did not come, and tells their failure jobs.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, staleReceiptDetection, { lock: keys.staleLock(), work: detectStale });
  },
});

export const abandonedEmailCallback = defineRunner({
  name: ABANDONED_CALLBACK,
  category: 2,
  kwargs: z.strictObject({ event_obj: MailNews }),
  doc: "Suppresses the addresses of bounces and complaints whose mail nobody awaits any more.",
  retry: CALLBACK_RETRY,
  async runMany(ctx, items) {
    await suppressAbandoned(
      ctx,
      items.map(({ event_obj }) => event_obj),
    );
    return undefined;
  },
});

export const defaultFailure = defineRunner({
  name: "runners.emails.default_failure",
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Decides whether a failed mail is tried again, and suppresses addresses that bounced or complained.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultFailures(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

export const defaultSuccess = defineRunner({
  name: "runners.emails.default_success",
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Notes that a mail was delivered.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultSuccesses(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

export const watchReputation: QueueRunner = defineRunner({
  name: "runners.emails.watch_reputation",
  category: 2,
  kwargs: NoKwargs,
  doc: "Pauses mails of lists when too many mails bounce or are called unwanted; brings set-aside mails back when lists go on.",
  async run(ctx) {
    if (!(await guardReputation(ctx))) await bringListsBack(ctx);
  },
});

export const runners = [
  send,
  receiptReconciliation,
  staleReceiptDetection,
  abandonedEmailCallback,
  defaultFailure,
  defaultSuccess,
  testFailureHandler,
  testSuccessHandler,
  sendTest,
  watchReputation,
];

export const recurring = [
  recur(send, {}, { seconds: [0, 15, 30, 45] }),
  recur(receiptReconciliation, {}, { seconds: [0] }),
  recur(staleReceiptDetection, {}, { seconds: [0] }),
  recur(watchReputation, {}, { minutes: [7, 22, 37, 52], seconds: [0] }),
];
