import { sql } from "kysely";
import type { Context, JobContext } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { handOver } from "../../mechanisms/hand-over/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { type DueEntry, purgatorySchedule } from "../../mechanisms/purgatory-schedule/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { isTimezone } from "../../people/users/service.ts";
import { type CreatedLink, createLinks, linkCallbacks, type NewLink } from "../links/service.ts";
import {
  acceptHandover,
  DAILY_REMINDER,
  forgetHandover,
  newTouchUid,
  type TouchChannel,
  type TouchEntry,
  touchEntryOf,
  touchQueueLength,
  touchSettings,
} from "../touch/service.ts";
import { handover, keys, type QueuedReminder, queuedReminder } from "./keys.ts";
import { dispatch } from "./scripts.ts";
import { settings } from "./settings.ts";
import { reminderStats } from "./stats.ts";
import { DEFAULT_ZONE, type ReminderTables } from "./tables.ts";

const sendSchedule = purgatorySchedule({
  schedule: keys.queued(),
  purgatory: keys.sendPurgatory(),
  codec: queuedReminder,
});

const GROUP = 500;
type Fate = "lost" | "stale" | "sent";
type ReportCount = "attempted" | "lost" | "stale" | "links" | TouchChannel;

interface Registration {
  readonly uid: string;
  readonly channel: TouchChannel;
  readonly timezone: string;
  readonly last_unix_date: number | null;
  readonly sub: string;
  readonly given_name: string | null;
  readonly user_since: number;
}

interface Planned {
  readonly entry: DueEntry<QueuedReminder>;
  readonly fate: Fate;
  readonly registration?: Registration;
  readonly touch?: TouchEntry;
  readonly links: readonly CreatedLink[];
}

/**
 * Sends reminders whose time has come: each becomes a touch with its links.
 *
 *   queued ─due─▶ purgatory ─links made─▶ dispatched: touches in the hand-over, counts ─▶ taken by the room of touches
 *
 * A death before the dispatch leaves the reminder in the purgatory and links that nobody claims; one after it leaves a
 * group that is handed over first by the next run. Nobody gets two reminders for one local day of a registration, even
 * when they moved to another zone in between.
 */
export async function sendReminders(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<ReportCount>(ctx, keys.sendReport);
  const run = new SendRun(ctx, report.startedAt);
  await handOverTouches(ctx);
  const size = ctx.config.get(settings.batch);
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) =>
      first
        ? sendSchedule.shift(ctx, lock.fence, size, report.startedAt)
        : sendSchedule.shiftMore(ctx, lock.fence, size, size, report.startedAt),
    handle: ({ size: held }) => run.handle(held),
  });
  await report.finish({ stopReason, counts: run.counts });
  return stopReason;
}

class SendRun {
  readonly counts: Record<ReportCount, number> = {
    attempted: 0,
    lost: 0,
    stale: 0,
    links: 0,
    sms: 0,
    push: 0,
    email: 0,
  };
  readonly #ctx: JobContext;
  readonly #startedAt: number;

  constructor(ctx: JobContext, startedAt: number) {
    this.#ctx = ctx;
    this.#startedAt = startedAt;
  }

  async handle(size: number): Promise<StopReason | undefined> {
    const ctx = this.#ctx;
    const entries = await sendSchedule.read(ctx, 0, size);
    // What a touch queue has no room for stays in the purgatory, and no links are made for it.
    const room = ctx.config.get(touchSettings.queueLimit) - (await touchQueueLength(ctx));
    const fitting = entries.slice(0, Math.max(0, room));
    if (fitting.length > 0) await this.#send(fitting);
    return fitting.length < entries.length ? "backpressure" : undefined;
  }

  async #send(entries: readonly DueEntry<QueuedReminder>[]): Promise<void> {
    const ctx = this.#ctx;
    const planned = await this.#plan(entries);
    const tally = new Tally(ctx);
    const block = tally.block((counting) => {
      for (const { entry, fate, registration, links } of planned) {
        const date = entry.value.unix_date;
        counting.incrOn(reminderStats, "sends_attempted", date);
        if (fate === "lost") counting.incrOn(reminderStats, "sends_lost", date);
        else if (fate === "stale")
          counting.incrOn(reminderStats, "skipped_sending", date, { extra: registration!.channel });
        else {
          counting.incrOn(reminderStats, "links", date, { by: links.length });
          counting.incrOn(reminderStats, "sent", date, { extra: registration!.channel });
        }
      }
    });
    const sent = planned.flatMap(({ entry, touch }) => (touch ? [{ reminder: entry.value, touch }] : []));
    const groups: (string | Buffer)[] = [];
    for (let start = 0; start < sent.length; start += GROUP) {
      const part = sent.slice(start, start + GROUP);
      const [items, reminders] = [part.map(({ touch }) => touch), part.map(({ reminder }) => reminder)];
      groups.push(handover.encode({ uid: newUid("rho"), items, reminders }));
    }
    const done = await ctx.redis.run(
      dispatch,
      [keys.sendPurgatory(), keys.handover(), ...tally.keys],
      [planned.length, groups.length, ...planned.map(({ entry }) => entry.raw), ...groups, ...block],
    );
    if (!done) throw new Error("daily_reminders:send_purgatory changed while its reminders were prepared");
    for (const plan of planned) this.#note(plan);
    await handOverTouches(ctx);
  }

  #note({ fate, registration, links }: Planned): void {
    this.counts.attempted += 1;
    if (fate === "sent") this.counts[registration!.channel] += 1;
    else this.counts[fate] += 1;
    this.counts.links += links.length;
  }

  async #plan(entries: readonly DueEntry<QueuedReminder>[]): Promise<readonly Planned[]> {
    const ctx = this.#ctx;
    const registrations = await this.#registrations(entries.map(({ value }) => value.uid));
    const late = this.#startedAt - ctx.config.get(settings.staleness);
    const quiet = ctx.config.get(settings.quietFirst);
    const fates = entries.map((entry) => {
      const registration = registrations.get(entry.value.uid);
      if (!registration) return { entry, fate: "lost" as const, touchUid: "" };
      const again = (registration.last_unix_date ?? -1) >= entry.value.unix_date;
      const early = entry.dueAt < registration.user_since + quiet;
      if (again || early || entry.dueAt < late) return { entry, fate: "stale" as const, registration, touchUid: "" };
      return { entry, fate: "sent" as const, registration, touchUid: newTouchUid() };
    });
    const wishes = fates.flatMap(({ fate, registration, touchUid }) =>
      fate === "sent" ? linksFor(registration!.channel, touchUid) : [],
    );
    const made = new Map<string, CreatedLink[]>();
    for (const link of wishes.length === 0 ? [] : await createLinks(ctx, wishes))
      made.set(link.touchUid, [...(made.get(link.touchUid) ?? []), link]);
    return fates.map(({ touchUid, ...plan }): Planned => {
      const links = made.get(touchUid) ?? [];
      if (plan.fate !== "sent") return { ...plan, links };
      return { ...plan, links, touch: this.#touch(touchUid, plan.registration!, links, plan.entry.dueAt) };
    });
  }

  async #registrations(uids: readonly string[]): Promise<ReadonlyMap<string, Registration>> {
    const { rows } = await sql<Registration>`
      select held.uid, held.channel, held.timezone, held.last_unix_date, users.sub, users.given_name,
        extract(epoch from users.created_at)::float8 as user_since
      from user_daily_reminders as held join users on users.id = held.user_id
      where held.uid = any(${[...uids]}::text[])`.execute(this.#ctx.sql.tables<ReminderTables>());
    return new Map(rows.map((row) => [row.uid, row]));
  }

  #touch(uid: string, { sub, channel, given_name, timezone }: Registration, links: readonly CreatedLink[], at: number) {
    const [page, leave] = links;
    const callbacks = links.length === 0 ? undefined : linkCallbacks(links.map(({ code }) => code));
    return touchEntryOf(this.#ctx, {
      uid,
      userSub: sub,
      slug: DAILY_REMINDER,
      channel,
      parameters: {
        name: given_name ?? "there",
        time_of_day: timeOfDay(at, timezone),
        ...(page ? { url: channel === "sms" ? page.shortUrl : page.url } : {}),
        ...(leave ? { unsubscribe_url: leave.url } : {}),
      },
      successCallback: callbacks?.success ?? null,
      failureCallback: callbacks?.failure ?? null,
    });
  }
}

/** Texts carry one short link, mails one and a second that ends them, notifications open the app by themselves. */
function linksFor(channel: TouchChannel, touchUid: string): readonly NewLink[] {
  const page = { identifier: "home" };
  if (channel === "push") return [];
  if (channel === "sms") return [{ touchUid, page, codeStyle: "short" }];
  return [
    { touchUid, page },
    {
      touchUid,
      page: { identifier: "unsubscribe" },
      preview: { identifier: "unsubscribe", extra: { list: "daily reminders" } },
      codeStyle: "long",
    },
  ];
}

const hourFormats = new Map<string, Intl.DateTimeFormat>();

/** What people call that hour where they are. */
export function timeOfDay(at: number, timezone: string): "morning" | "afternoon" | "evening" {
  const zone = isTimezone(timezone) ? timezone : DEFAULT_ZONE;
  let format = hourFormats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hour: "numeric", hourCycle: "h23" });
    hourFormats.set(zone, format);
  }
  const hour = Number(format.format(at * 1000));
  if (hour >= 3 && hour <= 11) return "morning";
  return hour >= 12 && hour <= 16 ? "afternoon" : "evening";
}

/** So that nobody is reminded again for a day, should they move or choose later hours. */
async function remember(ctx: Context, sent: readonly QueuedReminder[]): Promise<void> {
  if (sent.length === 0) return;
  await sql`
    update user_daily_reminders as held set last_unix_date = greatest(held.last_unix_date, wish.date)
    from unnest(
      ${sent.map(({ uid }) => uid)}::text[], ${sent.map(({ unix_date }) => unix_date)}::integer[]
    ) as wish (uid, date) where held.uid = wish.uid`.execute(ctx.sql.tables<ReminderTables>());
}

/** Gives the room of touches what was dispatched, and remembers before whom it reminds. */
function handOverTouches(ctx: Context): Promise<void> {
  return handOver(ctx, {
    list: keys.handover(),
    codec: handover,
    async accept({ uid, items, reminders = [] }) {
      await remember(ctx, reminders);
      await acceptHandover(ctx, { uid, entries: items });
    },
    forget: (uid) => forgetHandover(ctx, uid),
  });
}
