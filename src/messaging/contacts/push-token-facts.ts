import { type Kysely, sql } from "kysely";
import type { ContactContext } from "./change.ts";

/** A device got a notification: when its receipt said so. */
export interface TokenConfirmation {
  readonly token: string;
  readonly at: number;
}

/** Notes when tokens were last proven to work. The time never moves back; a token that is gone is passed over. */
export async function confirmPushTokens(
  ctx: Pick<ContactContext, "sql">,
  confirmations: readonly TokenConfirmation[],
): Promise<void> {
  if (confirmations.length === 0) return;
  await sql`
    update user_push_tokens set last_confirmed_at = confirmed.at
    from (
      select token, to_timestamp(max(at)) as at from unnest(
        ${confirmations.map(({ token }) => token)}::text[], ${confirmations.map(({ at }) => at)}::float8[]
      ) as given (token, at) group by token
    ) as confirmed
    where user_push_tokens.token = confirmed.token
      and (last_confirmed_at is null or last_confirmed_at < confirmed.at)`.execute(ctx.sql.tables());
}

/** How many tokens there are of those that came before that time; all without one. */
export async function pushTokensCreatedBefore(
  db: Kysely<never>,
  time: number = Number.POSITIVE_INFINITY,
): Promise<number> {
  const before = Number.isFinite(time) ? sql`to_timestamp(${time}::float8)` : sql`'infinity'::timestamptz`;
  const { rows } = await sql<{ total: number }>`
    select count(*)::int as total from user_push_tokens where created_at < ${before}`.execute(db);
  return rows[0]?.total ?? 0;
}
