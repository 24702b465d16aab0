import { type Invariant, seenTwice } from "../../kernel/keyspace/index.ts";
import { calendarOf } from "../../mechanisms/dated-counters/index.ts";
import { keys } from "./keys.ts";
import { isChange, PREFERENCES, preferenceChanges } from "./preferences.ts";

export const invariants: readonly Invariant[] = [
  {
    name: "users:preferences_are_known",
    doc: "Only the five preferences are counted, and changes are from one of them to another.",
    check: seenTwice(async (ctx) => {
      const { commands, topology } = ctx.redis;
      const counted = await commands.hkeys(topology.key(keys.preferenceCounts()));
      const unknown = counted.filter((name) => !(PREFERENCES as readonly string[]).includes(name));
      const today = calendarOf(ctx).unixDate(ctx.clock.now());
      const days = Array.from({ length: preferenceChanges.held + 2 }, (_, at) => today + 1 - at);
      const fields = await Promise.all(
        days.map((unix_date) => commands.hkeys(topology.key(keys.preferenceDay({ unix_date })))),
      );
      return [
        ...unknown.map((name) => `${name} is no preference of people for texts`),
        ...fields
          .flat()
          .filter((field) => !isChange(field))
          .map((field) => `${field} is no change of a preference`),
      ];
    }),
  },
];
