import type { Domain } from "../../domain.ts";
import type { StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { errors } from "./errors.ts";

/** The rooms of the house, asked for when they are needed: most of them stand below this one. */
export type Rooms = () => readonly Pick<Domain, "stats">[];

/** All statistics that rooms declare, in the order of the floor plan. */
export function familiesOf(rooms: Rooms): readonly StatsFamily[] {
  const families = rooms().flatMap(({ stats = [] }) => stats);
  for (const what of ["name", "table", "cachePrefix"] as const)
    for (const [index, family] of families.entries())
      if (families.findIndex((other) => other[what] === family[what]) !== index)
        throw new TypeError(`two families of statistics have the ${what} ${family[what]}`);
  return families;
}

export function familyNamed(rooms: Rooms, name: string): StatsFamily {
  const families = familiesOf(rooms);
  const found = families.find((family) => family.name === name);
  if (!found)
    throw errors.unknown_family({
      message: `There are no statistics named ${name}.`,
      detail: { allowed: families.map((family) => family.name) },
    });
  return found;
}
