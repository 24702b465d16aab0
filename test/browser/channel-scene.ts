import { sql as raw } from "kysely";
import { domains } from "../../src/domains.ts";
import { calendarOf, isoDate } from "../../src/mechanisms/dated-counters/index.ts";
import { quarantineEntry, quarantineOf } from "../../src/mechanisms/quarantine/index.ts";
import { suppressEmails, suppressPhones } from "../../src/messaging/contacts/service.ts";
import { enqueueMails } from "../../src/messaging/email/service.ts";
import type { House } from "../../src/surfaces/house.ts";

const DAYS = 90;
/** What somebody wrote who hopes that a page takes it for more than text. */
export const SCRIPT = "<script>alert('hello')</script>";

/** How events of an ordinary day were made up; counted together they are the event. */
const MADE_OF: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>> = {
  email_send: {
    accepted: { dailyReminder: 380, verifyEmailCode: 150, announcement: 60, welcome: 9, [SCRIPT]: 3 },
    failed_permanently: { "ses:MessageRejected": 3, "template:InvalidParameters": 1 },
  },
  email_events: {
    bounced: { "found:Permanent:General": 7, "found:Transient:MailboxFull": 4 },
    complaint: { "found:abuse": 2 },
  },
  daily_reminders: { sent: { push: 390, sms: 150, email: 298 } },
  sms_send: { failed_due_to_application_error_other: { "30003": 3, "21610": 2 } },
  sms_events: { attempted: { sent: 310, delivered: 301, undelivered: 9 } },
};

/** What channels have besides messages: breakdowns, suppressed addresses, entries set aside, and mails without news. */
export async function channelScene({ ctx, url }: House): Promise<void> {
  await writeBreakdowns(ctx);
  await writeCarriers(ctx);
  await suppressEmails(ctx, [
    { email: "left@example.com", reason: "User", scope: "lists" },
    { email: "gone@example.com", reason: "Bounce", scope: "all", note: "mailbox does not exist" },
    { email: "angry@example.com", reason: "Complaint", scope: "all" },
  ]);
  await suppressPhones(ctx, [
    { phoneNumber: "+12025550147", reason: "Stop", details: { body: "STOP" } },
    { phoneNumber: "+12025550148", reason: "Unreachable", details: { subidentifier: "30003" } },
  ]);
  const { commands, topology } = ctx.redis;
  const aside = (queue: string, entry: string, reason: string) =>
    commands.lpush(topology.key(quarantineOf(queue)), quarantineEntry(ctx, queue, entry, reason));
  await aside("email:to_send", '{"aud":"send"', "Expected ',' or '}' after property value in JSON at position 13");
  await aside("push:message_attempts:to_send", "hello", `not an entry: ${SCRIPT}`);
  await fetch(`${url}/api/1/sandbox/knobs`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ses: { rules: [{ pattern: "silent-*", outcome: "silent" }] } }),
  });
  await enqueueMails(ctx, [
    {
      email: "silent-reader@example.com",
      template: "sample",
      subject: `News for ${SCRIPT}`,
      parameters: { name: "Ada", message: SCRIPT },
    },
  ]);
}

/** Yesterday the second provider took over in the middle of the day. */
async function writeCarriers(ctx: House["ctx"]): Promise<void> {
  const calendar = calendarOf(ctx);
  const yesterday = calendar.startOf(calendar.unixDate(ctx.clock.now()) - 1);
  const steps = [
    { provider: "ses", step: "accepted", count: 57 },
    { provider: "ses", step: "failed", count: 4 },
    { provider: "smtp", step: "accepted", count: 38 },
  ];
  for (const { provider, step, count } of steps)
    await raw`insert into message_steps (uid, channel, step, at, provider)
      select ${`crl_em_${provider}_${step}_`} || n, 'email', ${step}, to_timestamp(${yesterday}::float8 + n * 60), ${provider}
      from generate_series(1, ${count}::integer) as n`.execute(ctx.sql.tables());
}

/** Days of statistics whose events are told apart. */
export async function writeBreakdowns(ctx: House["ctx"]): Promise<void> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const families = domains.flatMap(({ stats = [] }) => stats);
  for (const [name, events] of Object.entries(MADE_OF)) {
    const { table } = families.find((family) => family.name === name)!;
    const columns = Object.keys(events).flatMap((event) => [event, `${event}_breakdown`]);
    const rows = Array.from({ length: DAYS }, (_, index) => {
      const date = today - DAYS + index;
      const growth = (0.5 + (0.5 * index) / DAYS) * (1 + 0.15 * Math.sin(date * 1.3));
      const values = Object.values(events).flatMap((parts) => {
        const counts = Object.entries(parts).map(([key, usual]) => [key, Math.ceil(usual * growth)] as const);
        const sum = counts.reduce((total, [, count]) => total + count, 0);
        return [raw`${sum}::integer`, raw`${JSON.stringify(Object.fromEntries(counts))}::jsonb`];
      });
      return raw`(${isoDate(date)}::date, now(), ${raw.join(values)})`;
    });
    const names = raw.join(["retrieved_for", "retrieved_at", ...columns].map((column) => raw.ref(column)));
    const renewed = raw.join(columns.map((column) => raw`${raw.ref(column)} = excluded.${raw.ref(column)}`));
    await raw`insert into ${raw.table(table)} (${names}) values ${raw.join(rows)}
      on conflict (retrieved_for) do update set ${renewed}`.execute(ctx.sql.tables());
  }
}
