import { sql } from "kysely";
import type { Invariant } from "../../kernel/keyspace/index.ts";
import { TOKENS_PER_USER } from "./settings.ts";

const SHOWN = 100;

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
];
