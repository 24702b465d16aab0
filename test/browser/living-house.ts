import { sql as raw } from "kysely";
import { domains } from "../../src/domains.ts";
import { encodeJob } from "../../src/jobs/entry.ts";
import { jobKeys } from "../../src/jobs/index.ts";
import { calendarOf, isoDate } from "../../src/mechanisms/dated-counters/index.ts";
import { lockKeys, OWNER_LEASE } from "../../src/mechanisms/lock/index.ts";
import { enqueueMails } from "../../src/messaging/email/service.ts";
import { enqueuePushes } from "../../src/messaging/push/service.ts";
import { enqueueSms } from "../../src/messaging/sms/service.ts";
import type { House } from "../../src/surfaces/house.ts";
import { eventually } from "../harness/facts.ts";

const DAYS = 90;

/** How much of each event there was on an ordinary day, some time ago. */
const ORDINARY: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  push_tickets: { queued: 940, succeeded: 930, retried: 22, abandoned: 3, failed_due_to_device_not_registered: 9 },
  push_receipts: { succeeded: 915, failed_due_to_device_not_registered: 11, abandoned: 2 },
  sms_send: { queued: 320, succeeded_pending: 312, retried: 6, failed_due_to_application_error_other: 5 },
  sms_events: { attempted: 620, received_via_webhook: 610, succeeded: 301, failed: 8, found: 309, removed: 309 },
  email_send: { queued: 610, attempted: 606, templated: 606, accepted: 602, failed_permanently: 4 },
  email_events: { attempted: 598, succeeded: 585, bounced: 11, complaint: 2 },
  touch_send: { queued: 1_780, attempted: 1_770, reachable: 1_690, unreachable: 80 },
  touch_links: { created: 900, click_attempts: 245, clicks_buffered: 180, clicks_direct_to_db: 55, clicks_failed: 10 },
  daily_reminders: { attempted: 860, time_assigned: 851, sends_attempted: 850, sent: 838 },
};

/**
 * An installation that looks as if it had been used for a while: days of statistics, messages of today that really went
 * through the simulated providers, a job that failed, one for later, a lock and alerts.
 */
export async function livingHouse({ ctx }: House): Promise<void> {
  await writeHistory(ctx);
  await sendMessages(ctx);
  const { commands, topology } = ctx.redis;
  const now = ctx.clock.now();
  const failed = encodeJob({ name: "runners.example", kwargs: { message: "<b>hello</b>" }, queued_at: now - 90 });
  await commands.lpush(
    topology.key(jobKeys.failed()),
    JSON.stringify({
      id: "crl_fj_example",
      raw: failed,
      reason: "error",
      error: "The bell tower did not answer: <script>alert(1)</script>",
      worker: "crl_wk_gone",
      deliveries: 3,
      failed_at: now - 60,
    }),
  );
  await ctx.jobs.enqueueNamed("runners.example", { message: "later" }, { delay: 3_600 });
  const lock = { acquired_at: Math.floor(now) - 40, hostname: "jobs-elsewhere-1", lock_id: "abcdefghijklmnopqrstuv" };
  await commands.set(
    topology.key(lockKeys.runnerLock({ runner: "example" })),
    lockKeys.runnerLock.codec.encode(lock),
    "EX",
    OWNER_LEASE,
  );
  ctx.alerts.warning("sms:stale", "3 texts have waited for news longer than they should");
  ctx.alerts.warning("email:reputation", "Bounces are above 2 % this week", { urgent: true });
}

async function writeHistory(ctx: House["ctx"]): Promise<void> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const families = domains.flatMap(({ stats = [] }) => stats);
  for (const [name, events] of Object.entries(ORDINARY)) {
    const { table } = families.find((family) => family.name === name)!;
    const columns = Object.keys(events);
    const dates = Array.from({ length: DAYS }, (_, index) => today - DAYS + index);
    const rows = dates.map((date) => {
      // More every week, less on weekends, never the same twice; but always the same on the same day.
      const growth = 0.55 + (0.5 * (date - today + DAYS)) / DAYS;
      const weekend = [2, 3].includes(date % 7) ? 0.72 : 1;
      const counts = Object.entries(events).map(([event, usual], at) => {
        const ripple = 1 + 0.12 * Math.sin(date * 1.7 + at + event.length);
        return Math.round(usual * growth * weekend * ripple);
      });
      return raw`(${isoDate(date)}::date, now(), ${raw.join(counts.map((count) => raw`${count}::integer`))})`;
    });
    const names = raw.join(["retrieved_for", "retrieved_at", ...columns].map((column) => raw.ref(column)));
    await raw`insert into ${raw.table(table)} (${names}) values ${raw.join(rows)} on conflict do nothing`.execute(
      ctx.sql.tables(),
    );
  }
}

async function sendMessages(ctx: House["ctx"]): Promise<void> {
  const people = Array.from({ length: 24 }, (_, index) => index);
  const told = (channel: string) => ({
    failureJob: { name: `runners.${channel}.default_failure`, kwargs: {} },
    successJob: { name: `runners.${channel}.default_success`, kwargs: {} },
  });
  await enqueuePushes(
    ctx,
    people.map((person) => ({
      pushToken: `ExponentPushToken[person-${String(person).padStart(8, "0")}]`,
      contents: { title: "Good morning", body: "Breathe", channel_id: "default" },
      ...told("push"),
    })),
  );
  await enqueueSms(
    ctx,
    people.slice(0, 9).map((person) => ({
      phoneNumber: `+1202555${String(100 + person).padStart(4, "0")}`,
      body: "Your class starts in an hour",
      ...told("sms"),
    })),
  );
  await enqueueMails(
    ctx,
    people.slice(0, 15).map((person) => ({
      email: `person-${person}@example.com`,
      template: "verifyEmailCode",
      parameters: { code: "123456" },
    })),
  );
  const { commands, topology } = ctx.redis;
  const queues = ["push:message_attempts:to_send", "sms:to_send", "email:to_send"];
  await eventually(async () => {
    const lengths = await Promise.all(queues.map((queue) => commands.llen(topology.key(queue as never))));
    return lengths.every((length) => length === 0);
  }, "every message on its way");
}
