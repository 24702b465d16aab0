import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { type ContactContext, type ContactTransaction, changeContacts } from "./change.ts";
import { type HeldEmail, suppressedAmong } from "./destinations.ts";
import { noteUnsubscriptions, ownersOfEmails, suppressEmailsIn } from "./email-suppression.ts";
import type { EmailScope } from "./tables.ts";

/**
 * Which lists an address stays on. Whoever leaves all of them has one suppression, as after one click in the mailbox;
 * whoever leaves some has a row for each and no suppression. Bounces, complaints and decisions of administrators are no
 * choices, and stay whatever is chosen.
 */
export interface ListChoice {
  readonly email: string;
  /** All lists there are to choose among. */
  readonly lists: readonly string[];
  /** Those among them that the person wants. */
  readonly wanted: readonly string[];
  /** The mail whose link was followed. */
  readonly emailUid: string;
  /** What leaving all lists blocks. */
  readonly scope: EmailScope;
}

export async function chooseLists(ctx: ContactContext, choice: ListChoice): Promise<void> {
  const { email, emailUid, scope } = choice;
  const left = choice.lists.filter((list) => !choice.wanted.includes(list));
  await changeContacts(ctx, async (tx, change) => {
    const now = ctx.clock.now();
    const leavesAll = left.length === choice.lists.length;
    await sql`
      delete from email_list_optouts where lower(email_address) = lower(${email}::text)
        and (${leavesAll} or not list = any(${left}::text[]))`.execute(tx);
    const wish = { email, scope, reason: "User" } as const;
    if (leavesAll) {
      const [done] = await suppressEmailsIn(tx, change, now, [wish], "user");
      return noteUnsubscriptions(tx, now, [{ email, emailUid, suppressed: done!.outcome === "created" }]);
    }
    await sql`
      delete from suppressed_emails
      where lower(email_address) = lower(${email}::text) and reason = 'User'`.execute(tx);
    if ((await leave(tx, now, email, left)) > 0)
      await noteUnsubscriptions(tx, now, [{ email, emailUid, suppressed: false }]);
    change.reach("email", await ownersOfEmails(tx, [email]), { ifRemoved: "user" });
  });
}

/** Answers how many of these lists were not left before. */
async function leave(tx: ContactTransaction, now: number, email: string, lists: readonly string[]): Promise<number> {
  const { rows } = await sql`
    insert into email_list_optouts (uid, email_address, list, created_at)
    select fresh.uid, ${email}::text, fresh.list, to_timestamp(${now}::float8)
    from unnest(${lists.map(() => newUid("elo"))}::text[], ${[...lists]}::text[]) as fresh (uid, list)
    on conflict do nothing returning 1`.execute(tx);
  return rows.length;
}

/** What holds mails to this address back now, if anything does. */
export async function heldBack(ctx: Pick<Context, "sql">, email: string): Promise<HeldEmail | undefined> {
  return (await suppressedAmong(ctx, { emails: [email] })).emails.get(email);
}
