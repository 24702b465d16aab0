import type { Invariant } from "../../../src/kernel/keyspace/index.ts";
import { keys } from "./keys.ts";
import type { NoteTables } from "./tables.ts";

const PAGE = 500;
/** Scores are floats and columns are microseconds: a difference this small is none. */
const ROUNDING = 0.001;

export const invariants: readonly Invariant[] = [
  {
    name: "notes:alarms_ring_in_time",
    doc: "Every note has an alarm that does not ring later than the note ends.",
    async check({ redis, sql }) {
      const faults: string[] = [];
      const alarms = redis.topology.key(keys.alarms());
      for (let after = 0; ; ) {
        const page = await sql
          .tables<NoteTables>()
          .selectFrom("notes")
          .select(["id", "uid", "expires_at"])
          .where("id", ">", after)
          .orderBy("id")
          .limit(PAGE)
          .execute();
        if (page.length === 0) return faults;
        const scores = await redis.commands.zmscore(alarms, ...page.map(({ uid }) => uid));
        for (const [index, { uid, expires_at }] of page.entries())
          if (scores[index] == null) faults.push(`note ${uid} has no alarm`);
          else if (Number(scores[index]) > expires_at + ROUNDING)
            faults.push(`the alarm of note ${uid} rings too late`);
        after = page.at(-1)!.id;
      }
    },
  },
];
