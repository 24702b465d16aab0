import type { Invariant } from "../../kernel/keyspace/index.ts";
import {
  calendarIn,
  isoDate,
  readDayAsIs,
  type StatsFamily,
  statisticsSettings,
} from "../../mechanisms/dated-counters/index.ts";
import { familiesOf, type Rooms } from "./families.ts";
import { keys } from "./keys.ts";

type InvariantContext = Parameters<Invariant["check"]>[0];

const SCAN_COUNT = 1000;
const AT_ONCE = 100;

/** A key of one day of a declared family. */
interface DatedKey {
  readonly family: StatsFamily;
  readonly date: number;
  readonly name: string;
  /** For a breakdown, whose. */
  readonly event: string | undefined;
}

/** Every dated key that is there, found in one walk over the keyspace. */
async function datedKeys(ctx: InvariantContext, families: readonly StatsFamily[]): Promise<readonly DatedKey[]> {
  const byName = new Map(families.map((family) => [family.name, family]));
  if (byName.size === 0) return [];
  const found = new Map<string, DatedKey>();
  let cursor = "0";
  do {
    const [next, page] = await ctx.redis.commands.scan(cursor, "MATCH", "*stats:*:daily:*", "COUNT", SCAN_COUNT);
    cursor = next;
    for (const name of page.map((rendered) => ctx.redis.topology.documented(rendered))) {
      const [, word, date, event] = /^stats:(.+):daily:(\d+)(?::extra:([^:]+))?$/.exec(name) ?? [];
      const family = byName.get(word ?? "");
      if (family) found.set(name, { family, date: Number(date), name, event });
    }
  } while (cursor !== "0");
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** The days that have keys, each once. */
function daysOf(dated: readonly DatedKey[]): readonly { family: StatsFamily; date: number }[] {
  return [...new Map(dated.map(({ family, date }) => [`${family.name} ${date}`, { family, date }])).values()];
}

async function examine<T>(items: readonly T[], look: (item: T) => Promise<readonly string[]>): Promise<string[]> {
  const violations: string[] = [];
  for (let start = 0; start < items.length; start += AT_ONCE)
    violations.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(look))).flat());
  return violations;
}

const COUNT = /^\d{1,15}$/;

/** What must hold of every family that a room declares. */
export function invariantsOf(rooms: Rooms): readonly Invariant[] {
  return [
    {
      name: "stats:days_are_not_before_earliest",
      doc: "No day of a family is older than the family's earliest pointer, so that rotation finds every day.",
      check: async (ctx) =>
        examine(await datedKeys(ctx, familiesOf(rooms)), async ({ family, date, name }) => {
          const { commands, topology } = ctx.redis;
          const pointer = topology.key(family.earliest());
          // A rotation may remove the key and raise the pointer meanwhile: only what both sides of a look show counts.
          const [before, ttl, after] = await Promise.all([
            commands.get(pointer),
            commands.pttl(topology.key(name)),
            commands.get(pointer),
          ]);
          if (ttl !== -1) return [];
          if (before === null && after === null) return [`${name} is there, but ${family.earliest()} is not`];
          if (before === null || after === null || Math.min(Number(before), Number(after)) <= date) return [];
          return [`${name} is older than ${family.earliest()}, which says ${after}`];
        }),
    },
    {
      name: "stats:breakdowns_add_up",
      doc: "The breakdown of an event adds up to the event's count of that day, and only declared breakdowns exist.",
      async check(ctx) {
        const dated = await datedKeys(ctx, familiesOf(rooms));
        const undeclared = dated.flatMap(({ family, event, name }) =>
          event !== undefined && family.events[event]?.by === undefined
            ? [`${name} is a breakdown that ${family.name} does not declare`]
            : [],
        );
        const sums = await examine(daysOf(dated), async ({ family, date }) => {
          const { events, breakdowns } = await readDayAsIs(ctx, family, date);
          return Object.entries(breakdowns).flatMap(([event, parts]) => {
            const sum = Object.values(parts).reduce((total, count) => total + Number(count), 0);
            const total = Number(events[event] ?? 0);
            return sum === total
              ? []
              : [`${family.extra(date, event)} adds up to ${sum}, but ${event} in ${family.day(date)} is ${total}`];
          });
        });
        return [...undeclared, ...sums];
      },
    },
    {
      name: "stats:counts_are_counts",
      doc: "Every count of a day is a whole number that is not negative, of an event that is declared.",
      check: async (ctx) =>
        examine(daysOf(await datedKeys(ctx, familiesOf(rooms))), async ({ family, date }) => {
          const { events, breakdowns } = await readDayAsIs(ctx, family, date);
          const undeclared = Object.keys(events)
            .filter((event) => !(event in family.events))
            .map((event) => `${family.day(date)} counts ${event}, which ${family.name} does not declare`);
          const wrong = (key: string, counts: Readonly<Record<string, string>>) =>
            Object.entries(counts).flatMap(([field, count]) =>
              COUNT.test(count) ? [] : [`${key} holds ${JSON.stringify(count)} as the count of ${field}`],
            );
          const parts = Object.entries(breakdowns).flatMap(([event, counts]) =>
            wrong(family.extra(date, event), counts),
          );
          return [...undeclared, ...wrong(family.day(date), events), ...parts];
        }),
    },
    {
      name: "stats:rotated_in_time",
      doc: "No day stays in Redis for more than a day longer than its family holds days; otherwise rotation is late.",
      async check(ctx) {
        const held = await ctx.redis.commands.get(ctx.redis.topology.key(keys.timezone()));
        const today = calendarIn(held ?? statisticsSettings.timezone.default).unixDate(ctx.clock.now());
        const overdue = daysOf(await datedKeys(ctx, familiesOf(rooms))).filter(
          ({ family, date }) => date < today - family.held - 1,
        );
        return examine(overdue, async ({ family, date }) => {
          const { commands, topology } = ctx.redis;
          const ttls = await Promise.all(
            family.slots.map((slot) => commands.pttl(topology.key(family.counter(date, slot)))),
          );
          // What expires is in SQL already, and is only kept for a while.
          if (!ttls.includes(-1)) return [];
          return [`${family.day(date)} of ${isoDate(date)} is not in SQL yet: rotation is late`];
        });
      },
    },
  ];
}
