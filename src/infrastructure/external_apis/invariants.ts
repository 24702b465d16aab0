import type { Invariant } from "../../kernel/keyspace/index.ts";
import { spacedApiNames } from "./apis.ts";
import { keys } from "./keys.ts";

export const invariants: readonly Invariant[] = [
  {
    name: "external_apis:limiters",
    doc: "the last slot of every spaced API is a number and is forgotten once it no longer matters",
    async check({ redis }) {
      const findings = await Promise.all(
        spacedApiNames.map(async (api) => {
          const name = redis.topology.key(keys.limiter({ api }));
          const [raw, left] = await Promise.all([redis.commands.get(name), redis.commands.pttl(name)]);
          if (raw === null) return [];
          return [
            ...(Number.isFinite(Number(raw)) && raw.trim() !== "" ? [] : [`${keys.limiter({ api })} is no number`]),
            ...(left < 0 ? [`${keys.limiter({ api })} never expires`] : []),
          ];
        }),
      );
      return findings.flat();
    },
  },
];
