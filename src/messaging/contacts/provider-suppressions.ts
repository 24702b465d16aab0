import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { errorText } from "../../providers/failure.ts";
import { parseEmailAddress } from "./email-address.ts";
import { type EmailSuppression, suppressEmails } from "./email-suppression.ts";

/**
 * Some providers keep a list of their own of addresses that bounced or complained, for everybody who shares the account.
 * Theirs comes to us, so that no mail is wasted on it; ours goes to them, so that their other senders know. What people
 * or administrators decided stays here. Both directions may be repeated without effect, so there is nothing to remember:
 * every night looks at two days.
 */
const LOOKS_BACK = 2 * 86_400;
const ROWS_A_PAGE = 500;

/** Takes addresses off the provider's list. */
export async function liftThere(ctx: JobContext, emails: readonly string[]): Promise<void> {
  for (const email of emails) await ctx.providers.email.suppressions?.remove(email);
}

/** Answers how many addresses came in and went out; a provider that refuses is told of in the log, and asked tomorrow. */
export async function exchangeSuppressions(
  ctx: JobContext,
  since = ctx.clock.now() - LOOKS_BACK,
): Promise<{ readonly taken: number; readonly given: number }> {
  const theirs = ctx.providers.email.suppressions;
  const counts = { taken: 0, given: 0 };
  if (!theirs) return counts;
  try {
    const known = new Set<string>();
    for await (const page of theirs.since(since)) {
      const suppressions = page.flatMap(({ email: given, reason }): EmailSuppression[] => {
        const email = parseEmailAddress(given);
        return email === undefined ? [] : [{ email, reason, scope: "all", note: "on the provider's list" }];
      });
      for (const { email } of suppressions) known.add(email.toLowerCase());
      const done = await suppressEmails(ctx, suppressions);
      counts.taken += done.filter(({ outcome }) => outcome !== "kept").length;
      if (ctx.shuttingDown()) return counts;
    }
    for await (const { email, reason } of ours(ctx, since)) {
      if (ctx.shuttingDown() || ctx.budget.exhausted()) break;
      if (known.has(email.toLowerCase())) continue;
      await theirs.add({ email, reason });
      counts.given += 1;
    }
  } catch (error) {
    ctx.log.warn({ error: errorText(error) }, "the provider's list of suppressed addresses could not be exchanged");
  }
  ctx.log.info(counts, "suppressed addresses were exchanged with the provider");
  return counts;
}

async function* ours(ctx: JobContext, since: number) {
  let after = 0;
  for (;;) {
    const { rows } = await sql<{ id: number; email: string; reason: "Bounce" | "Complaint" }>`
      select id, email_address as email, reason from suppressed_emails
      where id > ${after}::bigint and created_at >= ${timestamp(since)} and reason in ('Bounce', 'Complaint')
      order by id limit ${ROWS_A_PAGE}::integer`.execute(ctx.sql.tables());
    if (rows.length === 0) return;
    after = rows.at(-1)!.id;
    yield* rows;
  }
}
