import type { Catalogue, CatalogueEntry } from "./catalogue.ts";

/**
 * How documented names become names on a server. Everything outside the connection speaks documented names; only
 * connections render them, and only on a Cluster does rendering change anything.
 */
export interface Topology {
  /** The name on the server of one key, for a single command. */
  key(name: string): string;
  /** The names of all keys of one script call: one family's, plus shared ones that take that family's tag. */
  scriptKeys(names: readonly string[]): readonly string[];
  /** Every server-side copy of a shared key, for readers that must see all of them. */
  copies(name: string): readonly string[];
  /** The documented name behind a server-side one. */
  documented(rendered: string): string;
}

export const standaloneTopology: Topology = {
  key: (name) => name,
  scriptKeys: (names) => names,
  copies: (name) => [name],
  documented: (rendered) => rendered,
};

/**
 * On a Cluster a key of family `sms` is `{sms}:…`, so a family shares a slot and its scripts are legal; a family sharded
 * by a parameter is `{event:42}:…` per value. A shared key has one copy per family.
 */
export function clusterTopology(catalogue: Catalogue): Topology {
  const tagOf = (entry: CatalogueEntry, parameters: Readonly<Record<string, string>>) => {
    const shard = entry.shardBy === undefined ? undefined : parameters[entry.shardBy];
    return shard === undefined ? entry.family : `${entry.family}:${shard}`;
  };
  const resolve = (name: string) => {
    const match = catalogue.match(name);
    if (!match) throw new TypeError(`no declared key pattern fits ${name}`);
    return { entry: match.entry, tag: tagOf(match.entry, match.parameters) };
  };
  return {
    key: (name) => `{${resolve(name).tag}}:${name}`,
    scriptKeys(names) {
      const resolved = names.map((name) => ({ name, ...resolve(name) }));
      const tags = new Set(resolved.filter(({ entry }) => !entry.shared).map(({ tag }) => tag));
      if (tags.size > 1)
        throw new TypeError(`a script may touch one family, these keys are of ${[...tags].join(" and ")}`);
      const tag = [...tags][0] ?? resolved[0]?.tag;
      const [shared] = resolved.filter(({ entry }) => entry.shared);
      // Readers look at one copy per family: a copy per shard would be written and never read.
      if (shared && resolved.some(({ entry, tag: own }) => own !== entry.family))
        throw new TypeError(`a script of a sharded family may not touch the shared key ${shared.name}`);
      return names.map((name) => `{${tag}}:${name}`);
    },
    copies(name) {
      const { entry, tag } = resolve(name);
      const tags = entry.shared ? catalogue.families.map((plan) => plan.name) : [tag];
      return tags.map((copy) => `{${copy}}:${name}`);
    },
    documented: (rendered) => rendered.replace(/^\{[^}]+\}:/, ""),
  };
}
