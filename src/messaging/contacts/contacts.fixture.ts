import { sql } from "kysely";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { migrationsOf } from "../../domain.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import type { Context } from "../../jobs/context.ts";
import { migrate, type Sql } from "../../kernel/sql/index.ts";
import { calendarOf } from "../../mechanisms/dated-counters/index.ts";
import { usersDomain } from "../../people/users/index.ts";
import { createUser } from "../../people/users/service.ts";
import type { ContactContext } from "./change.ts";
import { contacts } from "./index.ts";
import { installEffects, type ReachChange, reachableAmong, type TokenEvent } from "./service.ts";
import { contactMethodStats } from "./stats.ts";

export const rooms = [usersDomain(() => []), operations, contacts];

const TABLES = [
  "contact_method_log",
  "unsubscribed_emails_log",
  "email_failures",
  "suppressed_emails",
  "email_list_optouts",
  "suppressed_phone_numbers",
  "stat_deltas",
  "users",
];

/** A reminder that the stand-in for the reminders room added or dropped: `+ada push:push_token_added`. */
type ReminderStory = string[];

export interface ContactsHouse {
  readonly ctx: TestContext & Context;
  /** The same context over another engine or a mortal connection. */
  with(overrides: Partial<ContactContext>): ContactContext & Context;
  /** Creates users with these subs; answers their ids. */
  people(...subs: string[]): Promise<readonly number[]>;
  query<T>(text: string): Promise<readonly T[]>;
  /** The day's counters: every breakdown word with its count, by event. */
  counters(): Promise<Record<string, Record<string, number>>>;
  readonly reminders: ReminderStory;
  readonly tokenEvents: Partial<Record<TokenEvent, number>>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** The room over real engines, with stand-ins for the rooms that follow its changes. */
export async function openContacts(engine?: Sql): Promise<ContactsHouse> {
  const base = await openTestContext({ sql: engine === undefined });
  const database = engine ?? base.sql;
  await migrate(database, rooms.flatMap(migrationsOf));
  const around = (overrides: object) =>
    Object.defineProperties(
      {},
      {
        ...Object.getOwnPropertyDescriptors(base),
        ...Object.getOwnPropertyDescriptors({ sql: database, ...overrides }),
      },
    );
  const ctx = around({}) as TestContext & Context;
  const reminders: ReminderStory = [];
  const tokenEvents: Partial<Record<TokenEvent, number>> = {};
  const takeAway = installEffects({
    reminders: { reachChanged: (tx, changes) => follow(tx, changes, reminders) },
    tokenCounts: {
      count: (_stats, event, by) => {
        tokenEvents[event] = (tokenEvents[event] ?? 0) + by;
      },
    },
  });
  const query = async <T>(text: string) => (await sql.raw<T>(text).execute(database.tables())).rows;
  return {
    ctx,
    with: (overrides) => around(overrides) as ContactContext & Context,
    people: async (...subs) => {
      const ids: number[] = [];
      for (const sub of subs) ids.push((await createUser(ctx, [], { sub })).id);
      return ids;
    },
    query,
    async counters() {
      const date = calendarOf(ctx).unixDate(ctx.clock.now());
      const read = (key: string) => ctx.redis.commands.hgetall(ctx.redis.topology.key(key as never));
      const totals = await read(contactMethodStats.day(date));
      const found: Record<string, Record<string, number>> = {};
      for (const [event, total] of Object.entries(totals)) {
        const words = Object.entries(await read(contactMethodStats.extra(date, event)));
        found[event] = Object.fromEntries(words.map(([word, count]) => [word, Number(count)]));
        const sum = Object.values(found[event]).reduce((one, other) => one + other, 0);
        if (sum !== Number(total)) throw new Error(`${event} is ${total}, its words sum to ${sum}`);
      }
      return found;
    },
    reminders,
    tokenEvents,
    async clear() {
      await base.flush();
      for (const table of TABLES) await query(`delete from ${table}`);
      await query("drop table if exists reminders_of_test");
      await query("create table reminders_of_test (user_id bigint references users on delete cascade, channel text)");
      reminders.length = 0;
      for (const event of Object.keys(tokenEvents)) delete tokenEvents[event as TokenEvent];
    },
    async close() {
      takeAway();
      await base.close();
    },
  };
}

/** Keeps one reminder row for every reachable user and channel, as the reminders room will. */
async function follow(
  tx: Parameters<typeof reachableAmong>[0],
  changes: readonly ReachChange[],
  story: ReminderStory,
): Promise<void> {
  const steps: string[] = [];
  for (const { userId, channel, ifAdded, ifRemoved } of changes) {
    const reachable = (await reachableAmong(tx, channel, [userId])).has(userId);
    const row = sql`user_id = ${userId} and channel = ${channel}`;
    const had = (await sql`select 1 from reminders_of_test where ${row}`.execute(tx)).rows.length > 0;
    const { rows } = await sql<{ sub: string }>`select sub from users where id = ${userId}`.execute(tx);
    if (reachable && !had) {
      await sql`insert into reminders_of_test values (${userId}, ${channel})`.execute(tx);
      steps.push(`+${rows[0]?.sub} ${channel}:${ifAdded}`);
    }
    if (!reachable && had) {
      await sql`delete from reminders_of_test where ${row}`.execute(tx);
      steps.push(`-${rows[0]?.sub} ${channel}:${ifRemoved}`);
    }
  }
  story.push(...steps);
}
