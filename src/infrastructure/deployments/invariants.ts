import type { Invariant } from "../../kernel/keyspace/index.ts";
import { keys, SHA } from "./keys.ts";
import type { DeploymentTables } from "./tables.ts";

export const invariants: readonly Invariant[] = [
  {
    name: "deployments:build_hash_has_row",
    doc: "the current build of every unit is a commit with a row that is ready or being built",
    async check({ redis, sql }) {
      const hashes = await currentHashes(redis);
      if (hashes.length === 0) return [];
      const rows = await sql
        .tables<DeploymentTables>()
        .selectFrom("builds")
        .select(["repo", "sha"])
        .where("state", "in", ["ready", "building"])
        .where(
          "sha",
          "in",
          hashes.map(({ sha }) => sha),
        )
        .execute();
      const known = new Set(rows.map(({ repo, sha }) => `${repo} ${sha}`));
      return hashes.flatMap(({ name, repo, sha }) => {
        if (!SHA.test(sha)) return [`${name} is no commit`];
        return known.has(`${repo} ${sha}`) ? [] : [`${name} names ${sha}, which is neither ready nor being built`];
      });
    },
  },
];

async function currentHashes(redis: Parameters<Invariant["check"]>[0]["redis"]) {
  const found: { name: string; repo: string; sha: string }[] = [];
  let cursor = "0";
  do {
    const [next, page] = await redis.commands.scan(cursor, "MATCH", "*builds:*:hash", "COUNT", 1000, "TYPE", "string");
    cursor = next;
    const matched = page.flatMap((rendered) => {
      const name = redis.topology.documented(rendered);
      const repo = keys.buildHash.compiled.match(name)?.repo;
      return repo === undefined ? [] : [{ rendered, name, repo }];
    });
    const values = await Promise.all(matched.map(({ rendered }) => redis.commands.get(rendered)));
    for (const [index, { name, repo }] of matched.entries()) {
      const sha = values[index];
      if (typeof sha === "string") found.push({ name, repo, sha });
    }
  } while (cursor !== "0");
  return found;
}
