import { domains } from "../../domains.ts";
import type { Context } from "../../jobs/context.ts";
import { calendarOf, rotate } from "../../mechanisms/dated-counters/index.ts";
import { addEmails, addPhones, registerPushTokens } from "../../messaging/contacts/service.ts";
import { choose, maskOf, WEEKDAYS } from "../../messaging/reminders/service.ts";
import { changePoint, createPoint, DAILY_REMINDER, listPoints, pointsBySlug } from "../../messaging/touch/service.ts";
import { createUser, getUsers, listUsers } from "../../people/users/service.ts";
import { channelsOf, isOfDemo, MOST_PEOPLE, type Person, personAt, subOf } from "./cast.ts";
import { runOnce } from "./pipeline.ts";
import { REMINDER_WORDS, TOUCH_POINTS } from "./touch-points.ts";

/** How many people the app has when it begins. */
export const FOUNDERS = 60;
const DAY = 86_400;
/** They joined on ten days before the month that `carillon demo` fills in. */
const JOINED = { days: 10, latest: 31 };

export interface DemoApp {
  /** How many people were made now; none when the app was there already. */
  readonly created: number;
  readonly people: readonly Person[];
}

/**
 * Makes the app of the demo on an empty database: touch points first, then one person after another. From the first person
 * on the app is there and is left as it is, so whoever was interrupted has a smaller one. Answers nothing where the
 * database is somebody else's.
 */
export async function createDemoApp(ctx: Context, founders = FOUNDERS): Promise<DemoApp | undefined> {
  const before = await joined(ctx);
  if (before.length > 0) return { created: 0, people: before };
  if (!(await isEmpty(ctx))) return undefined;
  await writePoints(ctx);
  const people = Array.from({ length: founders }, (_, number) => personAt(number));
  const size = Math.ceil(founders / JOINED.days);
  for (let first = 0; first < founders; first += size) {
    const daysAgo = JOINED.latest + JOINED.days * (1 - first / founders);
    await join(asOf(ctx, ctx.clock.now() - daysAgo * DAY), people.slice(first, first + size));
  }
  await storeFinishedDays(ctx);
  return { created: founders, people };
}

/** The same house as it was then: what is written now is dated so. */
function asOf(ctx: Context, time: number): Context {
  return { ...ctx, clock: { ...ctx.clock, now: () => time } };
}

/** The people of the demo who have joined, in the order of their numbers. */
export async function joined(ctx: Pick<Context, "sql">): Promise<readonly Person[]> {
  const subs = Array.from({ length: MOST_PEOPLE }, (_, number) => subOf(number));
  const users = await getUsers(ctx, subs);
  return subs.flatMap((sub, number) => (users.has(sub) ? [personAt(number)] : []));
}

/** Whether nobody has begun to use this database for something. */
async function isEmpty(ctx: Context): Promise<boolean> {
  const { users } = await listUsers(ctx, { limit: 1 });
  if (users.some(({ sub }) => !isOfDemo(sub))) return false;
  const own = new Set([DAILY_REMINDER, ...TOUCH_POINTS.map(({ event_slug }) => event_slug)]);
  const points = await listPoints(ctx, { limit: own.size + 1 });
  return points.every(({ event_slug }) => own.has(event_slug));
}

async function writePoints(ctx: Context): Promise<void> {
  const held = await pointsBySlug(ctx, [DAILY_REMINDER, ...TOUCH_POINTS.map(({ event_slug }) => event_slug)]);
  for (const fields of TOUCH_POINTS) if (!held.has(fields.event_slug)) await createPoint(ctx, fields);
  const reminder = held.get(DAILY_REMINDER);
  if (reminder?.messages.sms.every(({ uid }) => !uid.includes("_demo_")))
    await changePoint(ctx, reminder.uid, REMINDER_WORDS);
}

/** People join: their accounts, how they can be reached, and when they want to hear from us. */
export async function join(ctx: Context, people: readonly Person[]): Promise<void> {
  for (const { sub, given, family, zone } of people)
    await createUser(ctx, domains, { sub, given_name: given, family_name: family, timezone: zone });
  await addEmails(
    ctx,
    people.flatMap(({ sub, email }) =>
      email ? [{ userSub: sub, email, verified: true, cause: "identity" as const }] : [],
    ),
  );
  const proven = { verified: true, receivesNotifications: true, cause: "verify" as const };
  await addPhones(
    ctx,
    people.flatMap(({ sub, phone }) => (phone ? [{ userSub: sub, phoneNumber: phone, ...proven }] : [])),
  );
  await registerPushTokens(
    ctx,
    people.flatMap(({ sub, token, platform }) => (token ? [{ userSub: sub, token, platform }] : [])),
  );
  for (const person of people) await chooseHours(ctx, person, person.zone);
}

const DAYS = {
  every: WEEKDAYS,
  weekdays: WEEKDAYS.slice(1, 6),
  some: ["Monday", "Wednesday", "Saturday"],
  never: [],
} as const;

export async function chooseHours(ctx: Context, person: Person, timezone: string): Promise<void> {
  const range = { type: "preset" as const, preset: person.wish.time };
  const wanted = channelsOf(person).filter((channel) => !person.unwanted.includes(channel));
  const choices = [
    { channels: wanted, mask: maskOf(DAYS[person.wish.days]) },
    { channels: person.unwanted, mask: 0 },
  ];
  for (const { channels, mask } of choices)
    if (channels.length > 0)
      await choose(ctx, person.sub, { channels: [...channels], mask, range, timezone, technique: "app" });
}

/** The days on which people joined are over: they go where finished days are kept. */
async function storeFinishedDays(ctx: Context): Promise<void> {
  const calendar = calendarOf(ctx);
  for (const family of domains.flatMap(({ stats = [] }) => stats)) await rotate(ctx, family, { calendar });
  await runOnce(ctx, "runners.users.rotate_preferences");
}
