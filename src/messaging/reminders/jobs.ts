import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { assignTimes } from "./assign.ts";
import { recheckCounts } from "./counts.ts";
import { keys } from "./keys.ts";
import { sendReminders } from "./send.ts";

const NoKwargs = z.strictObject({});
type Alone = Runner<typeof NoKwargs>;

export const assignTime: Alone = defineRunner({
  name: "runners.daily_reminders.assign_time",
  category: 2,
  kwargs: NoKwargs,
  doc: "Gives reminders of the coming half hour their times, zone by zone.",
  run: async (ctx) =>
    void (await runAlone(ctx, assignTime, { lock: keys.assignLock(), work: (under) => assignTimes(under) })),
});

export const send: Alone = defineRunner({
  name: "runners.daily_reminders.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends reminders whose time has come.",
  run: async (ctx) =>
    void (await runAlone(ctx, send, { lock: keys.sendLock(), schedules: [keys.queued()], work: sendReminders })),
});

export const recheck: Alone = defineRunner({
  name: "runners.daily_reminders.recheck_counts",
  category: 2,
  kwargs: NoKwargs,
  doc: "Corrects the counts of people who get reminders and of when they want texts, should they have drifted.",
  timeout: 240,
  run: recheckCounts,
});

export const runners = [assignTime, send, recheck];

export const recurring = [
  recur(assignTime, {}, { minutes: [0, 15, 30, 45], seconds: [0] }),
  recur(send, {}, { seconds: [5, 20, 35, 50] }),
  recur(recheck, {}, { hours: [2], minutes: [0], seconds: [0] }),
];
