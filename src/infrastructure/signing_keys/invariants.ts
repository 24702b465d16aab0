import type { Invariant } from "../../kernel/keyspace/index.ts";
import { KEYS_TTL, keys } from "./keys.ts";

export const invariants: readonly Invariant[] = [
  {
    name: "signing_keys:copies",
    doc: "copies of signing keys are lists of keys and live for at most an hour",
    async check({ redis }) {
      const copies = [keys.apple, keys.cognito] as const;
      const findings = await Promise.all(
        copies.map(async (copy) => {
          const name = redis.topology.key(copy());
          const [raw, left] = await Promise.all([redis.commands.getBuffer(name), redis.commands.pttl(name)]);
          if (raw === null) return [];
          const found: string[] = [];
          if (left < 0 || left > KEYS_TTL * 1000) found.push(`${copy()} lives longer than ${KEYS_TTL} s`);
          try {
            copy.codec.decode(raw);
          } catch (error) {
            found.push(`${copy()}: ${String(error)}`);
          }
          return found;
        }),
      );
      return findings.flat();
    },
  },
];
