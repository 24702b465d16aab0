import { parseArgs } from "node:util";
import { VirtualClock } from "../src/kernel/clock.ts";
import { assignTime } from "../src/messaging/reminders/jobs.ts";
import { keys } from "../src/messaging/reminders/keys.ts";
import { goal } from "./channels/stage.ts";
import {
  type BenchContext,
  countCommands,
  type Engine,
  enginesFor,
  furnish,
  openEngine,
  processorTime,
  runJob,
} from "./furnish.ts";
import { type Row, say, temporaryRedis, writeResults } from "./kit.ts";

const GOALS = { seconds: 180, megabytes: 300 };
const PORTION = 20_000;
const QUARTER = 900;
const DAY = 86_400;
/** A Monday at noon UTC, when the clocks change nowhere. */
const START = 1_781_524_800;
/** Forty zones, with offsets from -11 to +14 hours, halves and quarters among them. */
const ZONES = [
  "Pacific/Pago_Pago",
  "Pacific/Honolulu",
  "Pacific/Marquesas",
  "America/Anchorage",
  "America/Los_Angeles",
  "America/Phoenix",
  "America/Denver",
  "America/Chicago",
  "America/Mexico_City",
  "America/New_York",
  "America/Toronto",
  "America/Bogota",
  "America/Caracas",
  "America/Halifax",
  "America/St_Johns",
  "America/Sao_Paulo",
  "America/Argentina/Buenos_Aires",
  "Atlantic/South_Georgia",
  "Atlantic/Azores",
  "Europe/London",
  "Africa/Lagos",
  "Europe/Berlin",
  "Europe/Rome",
  "Africa/Johannesburg",
  "Europe/Athens",
  "Europe/Istanbul",
  "Asia/Tehran",
  "Asia/Dubai",
  "Asia/Kabul",
  "Asia/Karachi",
  "Asia/Kolkata",
  "Asia/Kathmandu",
  "Asia/Dhaka",
  "Asia/Bangkok",
  "Asia/Shanghai",
  "Asia/Tokyo",
  "Australia/Adelaide",
  "Australia/Sydney",
  "Pacific/Auckland",
  "Pacific/Kiritimati",
] as const;
const NOTES = [
  "Registrations are spread evenly over forty zones, three channels and the hours of the day, each with a window of two hours and all weekdays. The job that assigns times runs every quarter of an hour of a virtual day, in which the window of each registration comes near once; the time of its runs is added up.",
  "It is proven that as many times were assigned as there are registrations.",
  "Memory is the largest resident size of the measuring process. PGlite runs inside it with its tables in memory, so its own size before the first run is given too; Postgres runs beside it.",
];

interface Outcome {
  readonly seconds: number;
  readonly longestRun: number;
  readonly processor: number;
  readonly statements: number;
  readonly commands: number;
  readonly peak: number;
  readonly before: number;
}

/** `npm run bench -- reminders [--registrations N] [--engine PGlite|Postgres]`; only a whole run is recorded. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { registrations: { type: "string", default: "1000000" }, engine: { type: "string" } },
  });
  const registrations = Number(values.registrations);
  const rows = [];
  // Postgres first: the embedded engine leaves its memory behind in this process.
  for (const name of enginesFor(values.engine).toReversed()) {
    const measured = await measureOn(name, registrations);
    const row = (what: string, unit: string, value: number, limit: number | null = null) =>
      goal(`${name}: ${what}`, unit, [value], limit);
    rows.push(
      row("a day of every zone", "s", measured.seconds, GOALS.seconds),
      row("the longest run", "s", measured.longestRun),
      row("processor time of the process", "µs/registration", measured.processor),
      row("SQL queries", "queries/registration", measured.statements),
      row("Redis calls", "calls/registration", measured.commands),
      row("memory at most", "MB", measured.peak, name === "Postgres" ? GOALS.megabytes : null),
      row("memory before the first run", "MB", measured.before),
    );
  }
  for (const { metric, unit, ours, limit } of rows)
    console.log(
      `${metric.padEnd(46)} ${ours.toPrecision(4).padStart(10)} ${unit}${limit === null ? "" : `  goal ${limit}`}`,
    );
  if (args.length > 0) return console.log("\nOnly a run without options is recorded.");
  writeResults("reminders", rows as unknown as readonly Row[], { registrations, zones: ZONES.length, notes: NOTES });
}

async function measureOn(name: Engine["name"], registrations: number): Promise<Outcome> {
  const redis = await temporaryRedis();
  const engine = await openEngine(name);
  try {
    say(`${name}: ${registrations.toLocaleString("en-US")} registrations are made`);
    await populate(engine, registrations);
    const connection = await redis.connect();
    const clock = new VirtualClock(START);
    const ctx = furnish({ redis: connection, sql: engine.sql, clock });
    return await assignDay(ctx, clock, engine, countCommands(connection), registrations);
  } finally {
    await engine.close();
    await redis.close();
  }
}

/**
 * A day like any other: the first run catches up with what began before it and is not counted; in the 24 hours after it the
 * window of every registration comes near once.
 */
async function assignDay(
  ctx: BenchContext,
  clock: VirtualClock,
  engine: Engine,
  commands: () => number,
  registrations: number,
): Promise<Outcome> {
  const megabytes = () => process.memoryUsage.rss() / 1e6;
  const memory = megabytes();
  await runJob(ctx, assignTime);
  const waiting = await queued(ctx);
  const before = { statements: engine.statements(), commands: commands(), processor: processorTime() };
  let [peak, seconds, longestRun] = [megabytes(), 0, 0];
  const watch = setInterval(() => {
    peak = Math.max(peak, megabytes());
  }, 20);
  for (let passed = 0; passed < DAY; passed += QUARTER) {
    await clock.advance(QUARTER);
    const started = performance.now();
    await runJob(ctx, assignTime);
    const took = (performance.now() - started) / 1000;
    seconds += took;
    longestRun = Math.max(longestRun, took);
    const hours = (passed + QUARTER) / 3_600;
    if (hours % 4 === 0) say(`${engine.name}: ${hours} of 24 hours passed, ${seconds.toFixed(1)} s at work`);
  }
  clearInterval(watch);
  const assigned = (await queued(ctx)) - waiting;
  if (assigned !== registrations) throw new Error(`${assigned} times were assigned to ${registrations} registrations`);
  const [alert] = ctx.alerts.recorded;
  if (alert) throw new Error(`not all went well: ${alert.text}`);
  return {
    seconds,
    longestRun,
    peak,
    before: memory,
    processor: ((processorTime() - before.processor) / registrations) * 1e6,
    statements: (engine.statements() - before.statements) / registrations,
    commands: (commands() - before.commands) / registrations,
  };
}

const queued = ({ redis }: BenchContext) => redis.commands.zcard(redis.topology.key(keys.queued()));

async function populate({ sql }: Engine, registrations: number): Promise<void> {
  const zones = ZONES.map((zone) => `'${zone}'`).join(", ");
  const people = Math.ceil(registrations / 3);
  // In portions, so that the embedded engine never needs room for all of them at once.
  for (let first = 0; first < people; first += PORTION)
    await sql.script(`
with people as (
  insert into users (sub, uuid, timezone, created_at)
  select 'bench-' || n, gen_random_uuid(), (array[${zones}])[1 + n % ${ZONES.length}], now()
  from generate_series(${first}, ${Math.min(first + PORTION, people) - 1}) as n
  returning id, timezone, substr(sub, 7)::bigint as n
)
insert into user_daily_reminders (uid, user_id, channel, start_time, end_time, day_of_week_mask, timezone, created_at)
  select 'crl_udr_' || substr(md5(id || channel), 1, 22), id, channel, start, start + 7200, 127, timezone, now()
  from people cross join unnest(array['push', 'sms', 'email']) with ordinality as wish (channel, place),
    lateral (select ((n * 3 + place) * 7919 % 79200)::integer as start) as hours
  where n * 3 + place <= ${registrations};`);
  await sql.script("analyze");
}
