import { sql } from "kysely";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { type ContactContext, type ContactTransaction, changeContacts } from "./change.ts";
import { parseEmailAddress } from "./email-address.ts";
import { type EmailSuppression, type EmailSuppressionOutcome, suppressEmailsIn } from "./email-suppression.ts";
import { settings } from "./settings.ts";

/** A mail that came back, or a person who called it unwanted. */
export interface EmailFailure {
  readonly type: "Bounce" | "Complaint";
  readonly email: string;
  /** `Permanent/General`: type and subtype of a bounce; for a complaint its kind. */
  readonly extra?: string;
  /** The provider's id of the mail; by it a failure that is reported twice is known. */
  readonly messageId?: string;
}

/** The mail was at fault, not the address. */
const FAULTS_OF_THE_MAIL = ["MessageTooLarge", "ContentRejected", "AttachmentRejected"];
const DAY = 86_400;

/**
 * Writes failures down and suppresses the addresses that deserve it: at once after a complaint or a permanent bounce,
 * after several passing ones otherwise, because out-of-office replies are reported as passing bounces too. A failure
 * that is known already changes nothing. Answers what was suppressed.
 */
export async function suppressAfterFailure(
  ctx: ContactContext,
  failures: readonly EmailFailure[],
): Promise<readonly EmailSuppressionOutcome[]> {
  const proper = failures.flatMap((failure) => {
    const email = parseEmailAddress(failure.email);
    return email === undefined ? [] : [{ ...failure, email }];
  });
  if (proper.length < failures.length)
    ctx.log.warn({ count: failures.length - proper.length }, "failures of what is no email address are ignored");
  if (proper.length === 0) return [];
  return changeContacts(ctx, async (tx, change) => {
    const now = ctx.clock.now();
    await oneAtATime(tx, proper);
    const fresh = await insertFailures(tx, now, proper);
    const verdicts = fresh.map((failure) => ({ failure, verdict: verdictOf(failure) }));
    const soft = verdicts.flatMap(({ failure, verdict }) => (verdict === "soft" ? [failure.email] : []));
    const since = now - ctx.config.get(settings.softBounceWindowDays) * DAY;
    const tired = await countSoft(tx, soft, since, ctx.config.get(settings.softBounceThreshold));
    const suppressions = verdicts.flatMap(({ failure: { email, type }, verdict }): EmailSuppression[] =>
      verdict === "suppress" || (verdict === "soft" && tired.has(email)) ? [{ email, reason: type, scope: "all" }] : [],
    );
    if (suppressions.length === 0) return [];
    return suppressEmailsIn(tx, change, now, suppressions, "unreachable");
  });
}

function verdictOf({ type, extra = "" }: EmailFailure): "suppress" | "soft" | "none" {
  if (type === "Complaint") return "suppress";
  const [kind, subtype] = extra.split("/");
  if (FAULTS_OF_THE_MAIL.includes(subtype ?? "")) return "none";
  return kind === "Permanent" ? "suppress" : "soft";
}

/** Two failures of one address at the same time must see each other, or neither would be the last one too many. */
async function oneAtATime(tx: ContactTransaction, failures: readonly EmailFailure[]): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(address.lock) from (
      select distinct hashtextextended('email_failures ' || lower(email), 0) as lock
      from unnest(${failures.map(({ email }) => email)}::text[]) as email order by 1
    ) as address`.execute(tx);
}

async function insertFailures(
  tx: ContactTransaction,
  now: number,
  failures: readonly EmailFailure[],
): Promise<readonly EmailFailure[]> {
  const uids = failures.map(() => newUid("ef"));
  const { rows } = await sql<{ uid: string }>`
    insert into email_failures (uid, email_address, failure_type, failure_extra, message_id, created_at)
    select failure.*, to_timestamp(${now}::float8) from unnest(
      ${uids}::text[], ${failures.map(({ email }) => email)}::text[], ${failures.map(({ type }) => type)}::text[],
      ${failures.map(({ extra = null }) => extra)}::text[], ${failures.map(({ messageId = null }) => messageId)}::text[]
    ) as failure on conflict do nothing returning uid`.execute(tx);
  const fresh = new Set(rows.map(({ uid }) => uid));
  return failures.filter((_, index) => fresh.has(uids[index]!));
}

/** Which of these addresses have reached the limit of passing bounces, the ones just written included. */
async function countSoft(
  tx: ContactTransaction,
  emails: readonly string[],
  since: number,
  threshold: number,
): Promise<ReadonlySet<string>> {
  if (emails.length === 0) return new Set();
  const { rows } = await sql<{ email: string }>`
    select asked.email from (select distinct email from unnest(${[...emails]}::text[]) as email) as asked
    join email_failures as failure on lower(failure.email_address) = lower(asked.email)
    where failure.failure_type = 'Bounce' and failure.created_at > ${timestamp(since)}
      and split_part(coalesce(failure.failure_extra, ''), '/', 1) <> 'Permanent'
      and split_part(coalesce(failure.failure_extra, ''), '/', 2) <> all(${FAULTS_OF_THE_MAIL}::text[])
    group by asked.email having count(*) >= ${threshold}::integer`.execute(tx);
  return new Set(rows.map(({ email }) => email));
}
