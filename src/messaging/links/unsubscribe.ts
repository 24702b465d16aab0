import { sql } from "kysely";
import { z } from "zod";
import type { Context, JobContext } from "../../jobs/context.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { EmailAddress, unsubscribeEmails, unsuppressEmails } from "../contacts/service.ts";
import { emailSettings } from "../email/service.ts";
import { CODE } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys, LEAVING_WINDOW } from "./keys.ts";
import { UNSUBSCRIBE_PAGE } from "./pages.ts";
import type { LinkTables } from "./tables.ts";
import { deskOf, newUse } from "./uses.ts";
import { readWaiting } from "./waiting.ts";

/** By name, because the job itself needs this file. */
export const FINISH_UNSUBSCRIBING = "runners.touch.finish_unsubscribing";

export const WaitingUnsubscription = z.strictObject({
  code: z.string().regex(CODE),
  /** Absent: every address that the mail went to, as a mailbox's own button asks. */
  email: EmailAddress.optional(),
  visitor_uid: z.string().optional(),
});

/** Somebody who found a code could try addresses with it until one fits. */
const leaving = counterLimit({ reason: "leaving_with_a_code", limit: 10, window: LEAVING_WINDOW, mode: "fixed" });

/**
 * Unsubscribes an address with the code of a link in a mail that it got: whoever has the code read the mail. While the
 * mail's row is not in SQL yet nobody can say where it went, and a job finishes this when it is.
 */
export async function unsubscribeByCode(
  ctx: Context,
  wish: z.output<typeof WaitingUnsubscription>,
  userSub?: string,
): Promise<"done" | "later"> {
  await checkCode(ctx, wish, userSub);
  const went = await destinationsOf(ctx, wish.code);
  if (went.length === 0) {
    await ctx.jobs.enqueueNamed(FINISH_UNSUBSCRIBING, wish);
    return "later";
  }
  if (!isAddressee(wish, went)) throw errors.email_mismatch();
  await apply(ctx, wish, went);
  return "done";
}

/** Takes leaving back with the same proof. A bounce, a complaint or an administrator's decision stays. */
export async function comeBackByCode(
  ctx: Context,
  wish: { readonly code: string; readonly email: string },
  userSub?: string,
): Promise<void> {
  await checkCode(ctx, wish, userSub);
  if (!isAddressee(wish, await destinationsOf(ctx, wish.code))) throw errors.email_mismatch();
  await unsuppressEmails(ctx, { emails: [wish.email] }, { only: "User" });
}

/**
 * Refuses a code that is not that of a link for leaving, or that was tried with too many addresses. Only codes that are
 * real are counted, so that guesses leave no keys behind; a mailbox's own button names no address and may be repeated.
 */
async function checkCode(ctx: Context, wish: Wish, userSub: string | undefined): Promise<void> {
  const use = newUse(ctx, "check", wish.code, { userSub, visitorUid: wish.visitor_uid });
  const { outcome, target } = await deskOf(ctx).take(use);
  if (outcome === "dropped") throw errors.too_many_uses({ retryAfter: 5 });
  if (target?.page_identifier !== UNSUBSCRIBE_PAGE) throw errors.invalid_code();
  if (wish.email === undefined) return;
  const counted = await attempt(ctx, [leaving(keys.leavingLimit({ code: wish.code }))]);
  if (!counted.allowed) throw errors.too_many_leaves({ retryAfter: Math.ceil(counted.retryAfter) });
}

/** Fails, and is tried again, while the row of the mail is missing. */
export async function finishUnsubscribing(
  ctx: JobContext,
  wish: z.output<typeof WaitingUnsubscription>,
): Promise<void> {
  const went = await destinationsOf(ctx, wish.code);
  if (went.length === 0) throw new Error("the mail with this link is not known to have arrived yet");
  if (isAddressee(wish, went)) await apply(ctx, wish, went);
  else ctx.log.info("somebody tried to unsubscribe an address that did not get the mail");
}

type Wish = z.output<typeof WaitingUnsubscription>;

const isAddressee = ({ email }: Wish, went: readonly string[]) =>
  email === undefined || went.includes(email.toLowerCase());

async function apply(ctx: Context, { email, code: linkCode }: Wish, went: readonly string[]): Promise<void> {
  const scope = ctx.config.get(emailSettings.userSuppressionScope);
  await unsubscribeEmails(
    ctx,
    (email === undefined ? went : [email]).map((address) => ({ email: address, linkCode, scope })),
  );
}

/** The addresses that the touch of a link arrived at, in lower case. */
async function destinationsOf(ctx: Context, code: string): Promise<readonly string[]> {
  const db = ctx.sql.tables<LinkTables>();
  const [waiting] = await readWaiting(ctx, [code]);
  const { rows } = await sql<{ destination: string }>`
    select lower(touch.destination) as destination from user_touches as touch where touch.channel = 'email'
      and touch.send_uid = coalesce(${waiting?.link?.touch_uid ?? null}, (
        select first.send_uid from user_touch_links as link join user_touches as first on first.id = link.user_touch_id
        where link.code = ${code}))`.execute(db);
  return rows.map(({ destination }) => destination);
}
