import type { AnyKey } from "./declare.ts";
import { type FamilyPlan, planOf } from "./family.ts";
import type { Invariant } from "./invariant.ts";

export interface CatalogueEntry extends AnyKey {
  /** The domain whose `keys.ts` declares it. */
  readonly domain: string;
  readonly shardBy: string | undefined;
}

/** An entry with the parameters that a concrete name has under its pattern. */
export interface Match {
  readonly entry: CatalogueEntry;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Every key pattern of every domain. Two patterns that could both claim a name are resolved by the more specific one;
 * two equal patterns stop the start.
 */
export class Catalogue {
  readonly entries: readonly CatalogueEntry[];
  readonly families: readonly FamilyPlan[];
  /** Names of the domains, in the order of the floor plan. */
  readonly domains: readonly string[];
  /** What must hold over the keys of all domains, for whoever audits them. */
  readonly invariants: readonly Invariant[];
  /** Candidates by the first segment of their fixed prefix, the most specific first; "" holds those without one. */
  readonly #keysBySegment = new Map<string, CatalogueEntry[]>();
  readonly #channelsBySegment = new Map<string, CatalogueEntry[]>();

  constructor(
    domains: readonly {
      readonly name: string;
      readonly keys?: readonly object[];
      readonly invariants?: readonly Invariant[];
    }[],
  ) {
    this.domains = domains.map(({ name }) => name);
    this.invariants = domains.flatMap(({ invariants = [] }) => invariants);
    const byFamily = new Map<string, FamilyPlan>();
    const entries: CatalogueEntry[] = [];
    for (const domain of domains)
      for (const plan of (domain.keys ?? []).map(planOf)) {
        const known = byFamily.get(plan.name);
        if (known && known.shardBy !== plan.shardBy)
          throw new TypeError(`family ${plan.name} is declared with two shardings`);
        byFamily.set(plan.name, known ? { ...known, keys: [...known.keys, ...plan.keys] } : plan);
        for (const key of plan.keys)
          entries.push(Object.assign(Object.create(null), key, { domain: domain.name, shardBy: plan.shardBy }));
      }
    const seen = new Set<string>();
    for (const { kind, pattern } of entries) {
      const shape = `${kind} ${pattern.replace(/\{[^}]*\}/g, "{}")}`;
      if (seen.has(shape)) throw new TypeError(`the ${kind} pattern ${pattern} is declared twice`);
      seen.add(shape);
    }
    this.families = [...byFamily.values()];
    this.entries = entries.sort((a, b) => (a.pattern < b.pattern ? -1 : 1));
    for (const entry of [...entries].sort(moreSpecificFirst)) {
      const index = entry.kind === "channel" ? this.#channelsBySegment : this.#keysBySegment;
      const segment = firstSegment(entry.compiled.literalPrefix, entry.compiled.parameters.length > 0);
      index.set(segment, [...(index.get(segment) ?? []), entry]);
    }
  }

  /** Which pattern a documented (untagged) key name belongs to. */
  match(name: string): Match | undefined {
    return this.#find(this.#keysBySegment, name);
  }

  matchChannel(name: string): Match | undefined {
    return this.#find(this.#channelsBySegment, name);
  }

  #find(index: Map<string, CatalogueEntry[]>, name: string): Match | undefined {
    const own = firstMatch(index.get(firstSegment(name, false)), name);
    const open = firstMatch(index.get(""), name);
    if (!own || !open) return own ?? open;
    return moreSpecificFirst(own.entry, open.entry) <= 0 ? own : open;
  }
}

function firstMatch(candidates: readonly CatalogueEntry[] | undefined, name: string): Match | undefined {
  for (const entry of candidates ?? []) {
    const parameters = entry.compiled.match(name);
    if (parameters) return { entry, parameters };
  }
  return undefined;
}

/** More fixed characters win; among equals, what is fixed at the front. */
function moreSpecificFirst({ compiled: a }: CatalogueEntry, { compiled: b }: CatalogueEntry): number {
  return b.specificity - a.specificity || b.literalPrefix.length - a.literalPrefix.length;
}

/** `jobs` for `jobs:hot`. A fixed prefix that ends inside its first segment cannot be indexed and gives "". */
function firstSegment(name: string, isPrefix: boolean): string {
  const end = name.indexOf(":");
  if (end >= 0) return name.slice(0, end);
  return isPrefix ? "" : name;
}
