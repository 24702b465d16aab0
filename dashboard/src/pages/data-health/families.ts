import type { Answer } from "../../api/index.ts";
import { sentence } from "../../parts/index.ts";

type Health = Answer<"get", "/api/1/admin/stats/health">;

/** A family of statistics as it is declared. */
export interface Declared {
  readonly name: string;
  readonly title: string;
  readonly held: number;
  readonly table: string;
  readonly events: readonly string[];
}

/** One family with its health and, as soon as that is known, its own words. */
export type Family = Health["families"][number] & { readonly title: string };

/** Those that need somebody first: the latest, then those whose sums did not agree, then as they are declared. */
export function familiesOf({ families }: Health, declared: readonly Declared[] | undefined): readonly Family[] {
  const titled = families.map((family) => ({
    ...family,
    title: sentence(declared?.find(({ name }) => name === family.name)?.title ?? family.name),
  }));
  const trouble = ({ days_late, last_mismatch }: Family) => 2 * days_late + (last_mismatch === null ? 0 : 1);
  return titled.sort((one, other) => trouble(other) - trouble(one));
}
