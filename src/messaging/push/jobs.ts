import { z } from "zod";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { runFailures, runSuccesses } from "./callbacks.ts";
import { checkReceipts } from "./check.ts";
import { ticketHotToCold } from "./cold-to-hot.ts";
import { sendPush } from "./send.ts";
import { sendTestPush, TestPush } from "./test-push.ts";

const RETRY = [5, 30, 300, 1800, 7200];
const WithStory = z.looseObject({ data_raw: z.string() });

export const defaultFailure = defineRunner({
  name: "runners.push.default_failure",
  category: 2,
  kwargs: WithStory,
  doc: "Tries a failed notification again or gives it up, and forgets devices that are gone.",
  retry: RETRY,
  runMany: runFailures,
});

export const defaultSuccess = defineRunner({
  name: "runners.push.default_success",
  category: 2,
  kwargs: WithStory,
  doc: "Notes that the device of a notification works.",
  retry: RETRY,
  runMany: runSuccesses,
});

export const sendTest = defineRunner({
  name: "runners.push.send_test",
  category: 2,
  kwargs: TestPush,
  doc: "Sends one notification to see whether the channel works.",
  async run(ctx, kwargs) {
    const uid = await sendTestPush(ctx, kwargs);
    await ctx.progress(`queued as ${uid}`);
  },
});

export const runners = [sendPush, ticketHotToCold, checkReceipts, defaultFailure, defaultSuccess, sendTest];

export const recurring = [
  recur(sendPush, {}, { seconds: [0] }),
  recur(ticketHotToCold, {}, { minutes: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55], seconds: [0] }),
  recur(checkReceipts, {}, { seconds: [30] }),
];
