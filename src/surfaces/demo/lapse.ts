import { domains } from "../../domains.ts";
import { houseAnswersAt, sandboxOf, startSandbox } from "../../infrastructure/sandbox/service.ts";
import { settings as sandboxSettings } from "../../infrastructure/sandbox/settings.ts";
import type { Context } from "../../jobs/context.ts";
import { VirtualClock } from "../../kernel/clock.ts";
import { silentLog } from "../../kernel/log.ts";
import { Subscriber } from "../../kernel/redis/index.ts";
import { alertSettings } from "../../mechanisms/alerts/index.ts";
import { calendarOf, rotate } from "../../mechanisms/dated-counters/index.ts";
import { OWNER_LEASE } from "../../mechanisms/lock/index.ts";
import { notesSettled } from "../../mechanisms/message-log/index.ts";
import { keys as reminderKeys } from "../../messaging/reminders/keys.ts";
import { settings as reminderSettings } from "../../messaging/reminders/settings.ts";
import { touchSendStats } from "../../messaging/touch/stats.ts";
import { seededRandom } from "../../sandbox/seeded-random.ts";
import { surround } from "../house.ts";
import { version } from "../version.ts";
import { joined } from "./app.ts";
import { Crowd } from "./crowd.ts";
import type { Gap } from "./days.ts";
import { Month } from "./month.ts";
import { Pipeline } from "./pipeline.ts";
import { openScratchRedis, type ScratchRedis } from "./scratch.ts";
import { LIFELIKE } from "./tempo.ts";

const MINUTE = 60;
const HOUR = 3600;
/**
 * What is due within this time happens together: people are not in a hurry, and each beat costs a look at everything. With
 * the callbacks of a turn it must stay below an hour, after which reminders are too late to be sent.
 */
const BEAT = 50 * MINUTE;
/** How long providers take to call back. */
const CALLBACKS = 3 * MINUTE;
/** How often reminders get their times, and for how long ahead: seldom and far, since each look costs a query a zone. */
const ASSIGN_EVERY = 6 * HOUR;
const ASSIGN_AHEAD = 8 * HOUR;
const CHORES_EVERY = 6 * HOUR;
/** Seconds after which nobody holds a lock any more that a dead process held. */
const LEASES = OWNER_LEASE + MINUTE;
/** Longer than the latest receipt of a push is waited for. */
export const LAST_RECEIPTS = 75 * MINUTE;
/** Longer than anybody's hours of being reminded. */
export const LAST_REMINDERS = 7 * HOUR;

const RECEIPTS = ["runners.push.ticket_hot_to_cold", "runners.push.check"];
/** What nobody is nudged for, in the order in which one does what the next waits for. */
const CHORES = [
  ...RECEIPTS,
  "runners.sms.receipt_stale_detection",
  "runners.sms.receipt_recovery",
  "runners.sms.receipt_reconciliation",
  "runners.sms.follow_wishes",
  "runners.emails.receipt_reconciliation",
  "runners.touch.log",
  "runners.touch.persist_link",
  "runners.touch.delayed_click_persist",
  "runners.messages.store_log",
  "runners.stats.sweep_deltas",
];
/** What looks for things that are a day late. */
const RARE = [
  "runners.users.rotate_preferences",
  "runners.emails.stale_receipt_detection",
  "runners.touch.stale_detection",
  "runners.touch.leaked_link_detection",
];
const ASSIGN = "runners.daily_reminders.assign_time";
const REMIND = "runners.daily_reminders.send";

export interface LapsePlan {
  readonly gap: Gap;
  /** The start of the first day, or where an earlier run died that this one goes on with. */
  readonly from: number;
  /** Nothing is sent after this time. */
  readonly until: number;
  /** Where the Redis of this past lies. */
  readonly folder: string;
  /** Whether the house's present goes on from the end of this past, or was there before it. */
  readonly joinsPresent: boolean;
  readonly seed: number;
  readonly progress: (time: number) => void;
  /** Ends the past early, with the day that is under way; it comes to rest and is stored all the same. */
  readonly signal?: AbortSignal | undefined;
}

export interface Lapse {
  readonly scratch: ScratchRedis;
  readonly ctx: Context;
  readonly crowd: Crowd;
  readonly pipeline: Pipeline;
  /** When it ended: as planned, or earlier. */
  readonly until: number;
  readonly joinsPresent: boolean;
  close(): Promise<void>;
}

/**
 * Lives through days that are over: the house's own database, a Redis thrown away later, simulated providers and a server on
 * this machine, and a clock that skips from one due moment to the next. The jobs, routes and providers' clients are those of
 * every day. In the end nothing is under way, and the days are stored. A process that dies leaves this Redis behind with
 * everything that was under way, and the next one goes on in it: nothing is repeated that was done.
 */
export async function liveThrough(house: Context, plan: LapsePlan): Promise<Lapse> {
  const undo: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const clock = new VirtualClock(plan.from);
    const scratch = await openScratchRedis(plan.folder, clock);
    undo.push(() => scratch.close());
    const redis = scratch.connection;
    const subscriber = new Subscriber(redis, clock);
    undo.push(async () => subscriber.close());
    const config = house.config.with(
      [sandboxSettings.port, 0],
      [sandboxSettings.smtpPort, 0],
      [reminderSettings.assignHorizon, ASSIGN_AHEAD],
      // The alarms of a past that was made up concern nobody.
      [alertSettings.alertWebhookUrl, undefined],
      [alertSettings.opsWebhookUrl, undefined],
    );
    const engines = { clock, config, log: silentLog, redis, cacheRedis: redis, subscriber };
    const { ctx, close: leave } = await surround({ ...engines, sql: house.sql, hostname: `demo-${house.hostname}` });
    undo.push(leave);
    undo.push(await startSandbox(ctx, { web: true, worker: false }));
    const sandbox = sandboxOf(ctx);
    // Loaded only here: no other command needs the server's packages.
    const { buildServer, listen } = await import("../http/index.ts");
    const app = await buildServer(ctx, domains, { version: version() });
    undo.push(async () => {
      app.server.closeAllConnections();
      await app.close();
    });
    houseAnswersAt(ctx, (await listen(app, { host: "127.0.0.1", port: 0 })).url);
    const random = seededRandom(plan.seed + Math.floor(plan.from / HOUR));
    const crowd = new Crowd({ ctx, sandbox }, { people: await joined(ctx), random, tempo: LIFELIKE });
    const pipeline = new Pipeline(ctx, clock, sandbox);
    const month = new Month({ ctx, sandbox, crowd }, plan.gap);
    const isFirst = plan.from === calendarOf(house).startOf(plan.gap.from);
    if (!isFirst) {
      month.passOver(plan.from);
      await clock.advance(LEASES);
      await scratch.age();
    }
    const until = await live({ ctx, clock, crowd, pipeline, month }, plan);
    sandbox.knobs.reset();
    const joinsPresent = plan.joinsPresent && until === plan.until;
    await comeToRest({ ctx, clock, crowd, pipeline }, { ...plan, joinsPresent, until });
    await scratch.age();
    return { scratch, ctx, crowd, pipeline, until, joinsPresent, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface World {
  readonly ctx: Context;
  readonly clock: VirtualClock;
  readonly crowd: Crowd;
  readonly pipeline: Pipeline;
}

/** Answers when it ended. */
async function live({ month, ...world }: World & { readonly month: Month }, plan: LapsePlan): Promise<number> {
  const { ctx, clock, crowd, pipeline } = world;
  const calendar = calendarOf(ctx);
  let [assignAt, choresAt, day] = [clock.now(), clock.now() + CHORES_EVERY, plan.gap.from];
  let { until } = plan;
  for (;;) {
    const now = clock.now();
    // A day is there or not, so the one under way ends, and with it the reminders that have their time already.
    if (plan.signal?.aborted && until === plan.until)
      until = Math.min(plan.until, calendar.startOf(calendar.unixDate(now + ASSIGN_AHEAD) + 1));
    if (now >= until) return until;
    await month.happenUntil(now);
    if (now >= assignAt) {
      await assign(world, { ...plan, until, joinsPresent: plan.joinsPresent && until === plan.until });
      assignAt += ASSIGN_EVERY;
    }
    await crowd.step();
    // Nobody tells that the receipts of earlier pushes are there.
    for (const name of RECEIPTS) await pipeline.run(name);
    await turn(world);
    if (clock.now() >= choresAt) {
      await chores(world, calendar.unixDate(clock.now()) > day);
      day = calendar.unixDate(clock.now());
      choresAt += CHORES_EVERY;
    }
    plan.progress(Math.min(clock.now(), until));
    const due = [assignAt, choresAt, await pipeline.nextDue(), crowd.nextPlan, month.next, until];
    const next = Math.min(...due.filter((time) => time !== undefined));
    await pipeline.passUntil(Math.min(until, Math.max(next, clock.now() + BEAT)));
  }
}

/** Everything that waits is done, providers call back, and what they said is done too. */
async function turn({ clock, pipeline }: Pick<World, "clock" | "pipeline">): Promise<void> {
  const before = total(pipeline);
  await pipeline.settle();
  if (total(pipeline) === before) return;
  await pipeline.passUntil(clock.now() + CALLBACKS);
  await pipeline.settle();
}

const total = ({ runs }: Pipeline) => Object.values(runs).reduce((sum, count) => sum + count, 0);

async function assign({ ctx, pipeline, clock }: World, plan: LapsePlan): Promise<void> {
  // Where a present follows that has its own reminders, none is given a time in it.
  const ahead = plan.joinsPresent ? ASSIGN_AHEAD : Math.max(1, Math.min(ASSIGN_AHEAD, plan.until - clock.now()));
  const config = ctx.config.with([reminderSettings.assignHorizon, ahead]);
  await pipeline.run(ASSIGN, {}, { ...ctx, config });
  await pipeline.run(REMIND);
}

async function chores(
  { ctx, pipeline, clock }: Pick<World, "ctx" | "pipeline" | "clock">,
  night: boolean,
): Promise<void> {
  await notesSettled(ctx);
  for (const name of CHORES) await pipeline.run(name);
  await turn({ clock, pipeline });
  if (!night) return;
  for (const name of RARE) await pipeline.run(name);
  await turn({ clock, pipeline });
  await storeDays(ctx);
}

/**
 * Finished days move from Redis to SQL, as every night; with a date, those up to it that are not finished too. In the east
 * reminders are counted on the day after it already. Touches never are, and a row of theirs says that a day is there.
 */
async function storeDays(ctx: Context, today?: number): Promise<void> {
  const calendar = calendarOf(ctx);
  for (const family of domains.flatMap(({ stats = [] }) => stats)) {
    const ahead = family.table === touchSendStats.table ? 0 : 1;
    await rotate(ctx, family, { calendar, ...(today === undefined ? {} : { through: today + ahead }) });
  }
}

/** Lets what is under way end, without anything new. */
async function comeToRest(world: World, plan: LapsePlan): Promise<void> {
  const { ctx, clock, crowd, pipeline } = world;
  crowd.leave();
  const { commands, topology } = ctx.redis;
  const end = plan.until + (plan.joinsPresent ? LAST_RECEIPTS : LAST_REMINDERS + LAST_RECEIPTS);
  while (clock.now() < end) {
    await turn(world);
    await chores(world, false);
    await pipeline.passUntil(Math.min(end, clock.now() + 20 * MINUTE));
    const remindersLeft = await commands.zcard(topology.key(reminderKeys.queued()));
    if (!plan.joinsPresent && remindersLeft > 0) await pipeline.run(REMIND);
  }
  await chores(world, false);
  await notesSettled(ctx);
  await pipeline.run("runners.messages.store_log");
  if (plan.joinsPresent) return storeDays(ctx);
  // Where the days end early, the next day is not there yet.
  const isEarly = plan.until <= calendarOf(ctx).startOf(plan.gap.to);
  await storeDays(ctx, calendarOf(ctx).unixDate(isEarly ? plan.until - 1 : clock.now()));
}
