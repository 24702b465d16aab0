import { parseArgs } from "node:util";
import type { KeyName } from "../src/kernel/keyspace/index.ts";
import { messageLogKeys, notesSettled } from "../src/mechanisms/message-log/index.ts";
import { keys as emailKeys } from "../src/messaging/email/keys.ts";
import { keys as pushKeys } from "../src/messaging/push/keys.ts";
import { keys as smsKeys } from "../src/messaging/sms/keys.ts";
import { log as logJob, send as sendJob } from "../src/messaging/touch/jobs.ts";
import { keys } from "../src/messaging/touch/keys.ts";
import { DAILY_REMINDER, type NewTouch, sendTouches, TOUCH_CHANNELS } from "../src/messaging/touch/service.ts";
import { settings } from "../src/messaging/touch/settings.ts";
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
import { perSecond, type Row, readable, say, temporaryRedis, writeResults } from "./kit.ts";

const GOALS = { rate: 10_000, statements: 0.1 };
const GROUP = 500;
const QUEUES: readonly KeyName<"list">[] = [pushKeys.toSend(), smsKeys.toSend(), emailKeys.toSend()];

const NOTES = [
  "Everybody has one address of each channel; each gets a daily reminder as installed, with a link, a callback for its arrival and one for its failure, by push, text or mail in turn. touch:to_send is filled first; the time runs from the start of the send job until it has handed the last message to its channel.",
  "Each round proves that every touch became one message in the queue of its channel, and that nothing is left on the way. Rows about touches are written afterwards, by their own job, and measured for themselves.",
  "PGlite runs inside the measured process, Postgres beside it. Limits of queues are lifted, batches are the defaults.",
];

interface Round {
  readonly filled: number;
  readonly rate: number;
  readonly processor: number;
  readonly statements: number;
  readonly commands: number;
  readonly logged: number;
}

/** `npm run bench -- touches [--users N] [--touches N] [--rounds N] [--engine PGlite|Postgres]`; only a whole run is recorded. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      users: { type: "string", default: "100000" },
      touches: { type: "string", default: "100000" },
      rounds: { type: "string", default: "3" },
      engine: { type: "string" },
    },
  });
  const size = { users: Number(values.users), touches: Number(values.touches), rounds: Number(values.rounds) };
  const rows = [];
  for (const name of enginesFor(values.engine)) rows.push(...(await measureOn(name, size)));
  for (const { metric, unit, ours, limit } of rows)
    console.log(
      `${metric.padEnd(52)} ${readable(ours).padStart(10)} ${unit}${limit === null ? "" : `  goal ${limit}`}`,
    );
  if (args.length > 0) return console.log("\nOnly a run without options is recorded.");
  writeResults("touches", rows as unknown as readonly Row[], { ...size, notes: NOTES });
}

async function measureOn(name: Engine["name"], size: { users: number; touches: number; rounds: number }) {
  const redis = await temporaryRedis();
  const engine = await openEngine(name);
  try {
    say(`${name}: ${size.users.toLocaleString("en-US")} people move in`);
    await populate(engine, size.users);
    const lifted = [settings.queueLimit, settings.channelQueueLimit, settings.logLimit].map(
      (each) => [each, 1e9] as const,
    );
    const inside = await redis.connect();
    const commands = countCommands(inside);
    const ctx = furnish({ redis: inside, sql: engine.sql, settings: lifted });
    const outside = furnish({ redis: await redis.connect(), sql: engine.sql, settings: lifted });
    const rounds: Round[] = [];
    // The first round only warms the process up.
    for (let round = 0; round <= size.rounds; round++) {
      const measured = await measureRound(ctx, outside, engine, commands, size);
      if (round > 0) rounds.push(measured);
      say(`${name}: round ${round} of ${size.rounds}: ${readable(measured.rate)} touches/s`);
    }
    const row = (what: string, unit: string, field: keyof Round, limit: number | null = null) =>
      goal(
        `${name}: ${what}`,
        unit,
        rounds.map((round) => round[field]),
        limit,
      );
    return [
      row("queued", "touches/s", "filled"),
      row("from touch:to_send to the channels", "touches/s", "rate", GOALS.rate),
      row("processor time of the process", "µs/touch", "processor"),
      row("SQL queries", "queries/touch", "statements", GOALS.statements),
      row("Redis calls", "calls/touch", "commands"),
      row("rows about touches written", "rows/s", "logged"),
    ];
  } finally {
    await engine.close();
    await redis.close();
  }
}

async function measureRound(
  ctx: BenchContext,
  outside: BenchContext,
  engine: Engine,
  commands: () => number,
  { users, touches }: { users: number; touches: number },
): Promise<Round> {
  await outside.redis.commands.flushall();
  await engine.sql.script("truncate user_touch_debug_log, user_touch_point_states, user_touches cascade");
  const filled = await perSecond(touches, () => fill(outside, users, touches));
  const before = { statements: engine.statements(), commands: commands(), processor: processorTime() };
  const rate = await perSecond(touches, () => runJob(ctx, sendJob));
  const processor = ((processorTime() - before.processor) / touches) * 1e6;
  const spent = { statements: engine.statements() - before.statements, commands: commands() - before.commands };
  await notesSettled(ctx);
  await prove(outside, touches);
  const rows = await length(outside, keys.toLog());
  const logged = await perSecond(rows, () => runJob(ctx, logJob));
  if ((await length(outside, keys.toLog())) > 0) throw new Error("rows about touches were left");
  return {
    filled,
    rate,
    processor,
    statements: spent.statements / touches,
    commands: spent.commands / touches,
    logged,
  };
}

async function fill(ctx: BenchContext, users: number, touches: number): Promise<void> {
  for (let start = 0; start < touches; start += GROUP) {
    const group = Array.from({ length: Math.min(GROUP, touches - start) }, (_, at) => touchOf(start + at, users));
    const sent = await sendTouches(ctx, group);
    if (sent.some(({ outcome }) => outcome !== "queued")) throw new Error("a touch was not queued");
  }
}

function touchOf(index: number, users: number): NewTouch {
  const code = index.toString(36).padStart(8, "0");
  const kwargs = { codes: [code] };
  return {
    userSub: `bench-${index % users}`,
    slug: DAILY_REMINDER,
    channel: TOUCH_CHANNELS[index % TOUCH_CHANNELS.length]!,
    parameters: {
      name: `Ada ${index}`,
      time_of_day: "morning",
      url: `https://app.example.com/l/${code}`,
      unsubscribe_url: `https://app.example.com/l/${code}/unsubscribe`,
    },
    successCallback: { name: "runners.touch.persist_links", kwargs },
    failureCallback: { name: "runners.touch.abandon_links", kwargs },
  };
}

const length = ({ redis }: BenchContext, key: KeyName<"list">) => redis.commands.llen(redis.topology.key(key));

/** Fails unless every touch is one message of its channel, waits for its end, and nothing else is left anywhere. */
async function prove(ctx: BenchContext, touches: number): Promise<void> {
  const { commands, topology } = ctx.redis;
  const lengths = await Promise.all(QUEUES.map((queue) => length(ctx, queue)));
  const wanted = TOUCH_CHANNELS.map((_, at) => Math.ceil((touches - at) / TOUCH_CHANNELS.length));
  if (lengths.join() !== wanted.join()) throw new Error(`${lengths} messages wait in the channels, not ${wanted}`);
  const told = new Set<string>();
  for (const queue of QUEUES)
    for (const raw of await commands.lrange(topology.key(queue), 0, -1))
      told.add((JSON.parse(raw) as { success_job: { kwargs: { touch_uid: string } } }).success_job.kwargs.touch_uid);
  if (told.size !== touches) throw new Error(`the messages are of ${told.size} touches, not of ${touches}`);
  const left = [keys.toSend(), keys.sendPurgatory(), keys.handoverPush(), keys.handoverSms(), keys.handoverEmail()];
  for (const key of left) if ((await length(ctx, key)) > 0) throw new Error(`something is left in ${key}`);
  const pending = await commands.zcard(topology.key(keys.pending()));
  if (pending !== touches) throw new Error(`${pending} touches wait for their end, not ${touches}`);
  if ((await length(ctx, messageLogKeys.buffer())) === 0) throw new Error("no message has a story");
  const aside = await commands.keys("quarantine:*");
  const [alert] = ctx.alerts.recorded;
  if (aside.length > 0 || alert) throw new Error(`not all went well: ${aside.join(", ")} ${alert?.text ?? ""}`);
}

/** People with one address of each channel. */
async function populate({ sql }: Engine, users: number): Promise<void> {
  await sql.script(`
insert into users (sub, uuid, timezone, created_at)
  select 'bench-' || n, gen_random_uuid(), 'Europe/Rome', now() from generate_series(0, ${users - 1}) as n;
insert into user_email_addresses (uid, user_id, email, verified, receives_notifications, created_at)
  select 'crl_uea_' || sub, id, sub || '@example.com', true, true, now() from users;
insert into user_phone_numbers (uid, user_id, phone_number, verified, receives_notifications, created_at)
  select 'crl_upn_' || sub, id, '+1415' || lpad(id::text, 7, '0'), true, true, now() from users;
insert into user_push_tokens (uid, user_id, platform, token, receives_notifications, created_at, updated_at, last_seen_at)
  select 'crl_upt_' || sub, id, 'ios', 'ExponentPushToken[' || sub || ']', true, now(), now(), now() from users;
analyze;`);
}
