import { sql } from "kysely";
import type { Invariant } from "../../kernel/keyspace/index.ts";
import { keys } from "./keys.ts";
import { TOKENS_PER_USER } from "./settings.ts";

const SHOWN = 100;
/** Seconds that clocks of two hosts may differ. */
const SKEW = 5;

export const invariants: readonly Invariant[] = [
  {
    name: "contacts:token_limit",
    doc: `No user has more than ${TOKENS_PER_USER} push tokens.`,
    async check(ctx) {
      const { rows } = await sql<{ sub: string; tokens: number }>`
        select users.sub, count(*) as tokens from user_push_tokens join users on users.id = user_push_tokens.user_id
        group by users.sub having count(*) > ${TOKENS_PER_USER}::integer
        order by users.sub limit ${SHOWN}::integer`.execute(ctx.sql.tables());
      return rows.map(({ sub, tokens }) => `${sub} has ${tokens} push tokens`);
    },
  },
  {
    name: "contacts:settings_improved_in_the_past",
    doc: "The choices about reminders became better in the past: a time ahead would ask everybody at every start.",
    async check({ redis, clock }) {
      const at = Number((await redis.commands.get(redis.topology.key(keys.settingsImprovedAt()))) ?? 0);
      return at > clock.now() + SKEW ? [`${keys.settingsImprovedAt()} is ${Math.ceil(at - clock.now())} s ahead`] : [];
    },
  },
];
