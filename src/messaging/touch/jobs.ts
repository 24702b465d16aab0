import { createHash } from "node:crypto";
import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { CampaignWish, sendCampaigns, startCampaign } from "./campaign.ts";
import type { TouchChannel } from "./entries.ts";
import { FailureKwargs, handleFailures, handleSuccesses, SuccessKwargs } from "./handlers.ts";
import { keys } from "./keys.ts";
import { writeLog } from "./log.ts";
import { forgetRequests } from "./requests.ts";
import { sendQueued } from "./send.ts";
import { detectStale } from "./stale.ts";
import { sendTestTouch, TestTouch } from "./test-touch.ts";
import { tellClicks, tellFailed } from "./webhooks.ts";

const NoKwargs = z.strictObject({});
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
type Alone = Runner<typeof NoKwargs>;

export const send: Alone = defineRunner({
  name: "runners.touch.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the touches that wait: finds whom they reach, with which words, and hands the messages to their channels.",
  run: async (ctx) =>
    void (await runAlone(ctx, send, { lock: keys.sendLock(), queues: [keys.toSend()], work: sendQueued })),
});

export const log: Alone = defineRunner({
  name: "runners.touch.log",
  category: 2,
  kwargs: NoKwargs,
  doc: "Writes the rows about touches: arrivals, states, the debug trail.",
  run: async (ctx) => void (await runAlone(ctx, log, { lock: keys.logLock(), queues: [keys.toLog()], work: writeLog })),
});

export const staleDetection: Alone = defineRunner({
  name: "runners.touch.stale_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Fails touches whose end no channel told.",
  run: async (ctx) => void (await detectStale(ctx)),
});

const failureHandler = (channel: TouchChannel) =>
  defineRunner({
    name: `runners.touch.${channel}_failure_handler`,
    category: 2,
    kwargs: FailureKwargs,
    doc: `A message of a touch failed by ${channel}: the channel decides about another try, and the touch may end.`,
    retry: CALLBACK_RETRY,
    runMany: (ctx, items) => handleFailures(ctx, channel, items),
  });

const successHandler = (channel: TouchChannel) =>
  defineRunner({
    name: `runners.touch.${channel}_success_handler`,
    category: 2,
    kwargs: SuccessKwargs,
    doc: `A message of a touch arrived by ${channel}: the touch ends well.`,
    retry: CALLBACK_RETRY,
    runMany: (ctx, items) => handleSuccesses(ctx, channel, items),
  });

export const handlers = {
  push: { failure: failureHandler("push"), success: successHandler("push") },
  sms: { failure: failureHandler("sms"), success: successHandler("sms") },
  email: { failure: failureHandler("email"), success: successHandler("email") },
} as const;

/** Whoever queues it by name need not choose a uid; a job that is delivered twice begins one campaign all the same. */
const campaignRunner = (name: `runners.${string}`, channel: TouchChannel, whom: string) =>
  defineRunner({
    name,
    category: 2,
    kwargs: CampaignWish.extend({ uid: z.string().min(1).max(200).optional() }),
    doc: `Begins a campaign: everybody ${whom} hears of an event.`,
    retry: CALLBACK_RETRY,
    async run(ctx, { uid, ...wish }) {
      const told = createHash("sha256").update(`${ctx.job.uid ?? ctx.job.queuedAt} ${JSON.stringify(wish)}`);
      await startCampaign(ctx, { ...wish, channel, uid: uid ?? `crl_tcm_${told.digest("base64url").slice(0, 22)}` });
    },
  });

export const campaignRunners = {
  push: campaignRunner("runners.push.send_marketing_push", "push", "with a device that wants it"),
  sms: campaignRunner("runners.sms.send_marketing_sms", "sms", "who gets reminders by text"),
  email: campaignRunner("runners.emails.send_announcement", "email", "with an address that wants it"),
} as const;

export const sendCampaignsJob: Alone = defineRunner({
  name: "runners.touch.send_campaigns",
  category: 2,
  kwargs: NoKwargs,
  doc: "Goes through everybody for the campaigns that have begun, as far as touches have room.",
  async run(ctx) {
    const stopped = await runAlone(ctx, sendCampaignsJob, { lock: keys.campaignLock(), work: sendCampaigns });
    if (stopped === "time_exhausted") ctx.jobs.nudge(sendCampaignsJob, {});
  },
});

export const sendTest = defineRunner({
  name: "runners.touch.send_test",
  category: 2,
  kwargs: TestTouch,
  doc: "Sends a message of a touch point to at most three addresses of one person, and remembers nothing of it.",
  async run(ctx, wish) {
    // A worker that died leaves the job to another one; the messages that somebody watches go out once all the same.
    const uids = await sendTestTouch(ctx, wish, ctx.job.jobUid);
    await ctx.progress(uids.length === 0 ? "queued before" : `queued as ${uids.join(", ")}`);
  },
});

export const forgetRequestsJob: Alone = defineRunner({
  name: "runners.touch.forget_requests",
  category: 2,
  kwargs: NoKwargs,
  doc: "Forgets idempotency keys that are older than a week.",
  run: (ctx) => forgetRequests(ctx),
});

export const runners = [
  send,
  log,
  staleDetection,
  ...Object.values(handlers).flatMap(({ failure, success }) => [failure, success]),
  ...Object.values(campaignRunners),
  sendCampaignsJob,
  sendTest,
  forgetRequestsJob,
  tellClicks,
  tellFailed,
];

export const recurring = [
  recur(send, {}, { seconds: [0, 15, 30, 45] }),
  recur(log, {}, { seconds: [3] }),
  recur(staleDetection, {}, { minutes: [0, 15, 30, 45], seconds: [0] }),
  // Campaigns start it themselves; this is for what a dead run left.
  recur(sendCampaignsJob, {}, { minutes: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55], seconds: [25] }),
  recur(forgetRequestsJob, {}, { hours: [3], minutes: [0], seconds: [0] }),
];
