import type { Context } from "../../jobs/context.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { newUid } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { forgetSoon } from "../../mechanisms/hand-over/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { parseEmailAddress } from "../contacts/service.ts";
import { book, checkParameters, type Template, errors as templateErrors } from "../email_templates/service.ts";
import { checkEnvelope } from "./compose.ts";
import { type Attempt, attemptEntry, CallbackJob, LONGEST_ENTRY, MailUid } from "./entries.ts";
import { errors } from "./errors.ts";
import { CALL_FLAG_TTL, HANDOVER_FLAG_TTL, keys } from "./keys.ts";
import { type Lane, laneOf } from "./line.ts";
import { enqueue } from "./scripts.ts";
import { emailSendStats } from "./stats.ts";
import { unsubscribeUrl } from "./unsubscribe-token.ts";

/** How many mails one call takes; more are handed over in further calls. */
export const MAX_PER_CALL = 500;

/** Later tries write other times into the entry, and it must still fit. */
const LONGEST_NEW = LONGEST_ENTRY - 64;

type EnqueueContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts" | "jobs">;

export interface NewMail {
  readonly email: string;
  readonly template: string;
  /** Mails of lists get `unsubscribeUrl` where the caller gives none. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The template's own unless given. */
  readonly subject?: string;
  /** Chosen by callers whose rows must name the mail before it exists. */
  readonly uid?: string;
  /** Hears of every failed try, and decides whether there is another: see `decideFailures`. */
  readonly failureJob?: CallbackJob;
  /** Hears once that the mail was delivered. */
  readonly successJob?: CallbackJob;
}

export interface EnqueueOptions {
  /** Refuses with `backpressure` when both lanes together would grow beyond this. */
  readonly maxLength?: number;
  /** Recognises the repeat of a call whose answer was lost, for ten minutes. */
  readonly callUid?: string;
}

export type EnqueueAnswer =
  | { readonly ok: true; readonly uids: readonly string[]; readonly length: number }
  | { readonly ok: false; readonly reason: "backpressure" | "duplicate" };

const DEFAULT_JOBS = {
  success: { name: "runners.emails.default_success", kwargs: {} },
  failure: { name: "runners.emails.default_failure", kwargs: {} },
} satisfies Record<string, CallbackJob>;

/**
 * Makes queue entries of mails. Whatever could poison the queue or would be refused when the mail is written is refused
 * here, where somebody hears of it.
 */
export function attemptsFor(
  ctx: Pick<Context, "clock" | "config" | "jobs">,
  mails: readonly NewMail[],
): readonly Attempt[] {
  const now = ctx.clock.now();
  const attempts = mails.map((mail) => attemptFor(ctx, mail, now));
  if (new Set(attempts.map(({ uid }) => uid)).size < attempts.length)
    throw errors.invalid_email({ message: "Two mails of one call have the same uid." });
  return attempts;
}

function attemptFor(ctx: Pick<Context, "clock" | "config" | "jobs">, mail: NewMail, now: number): Attempt {
  const uid = mail.uid ?? newUid("em");
  if (mail.uid !== undefined && !MailUid.safeParse(uid).success)
    throw errors.invalid_email({ message: "A uid has 1 to 128 letters, digits, _ and -." });
  const email = addressOf(mail.email);
  const { list } = book.get(mail.template);
  const own = list === null || "unsubscribeUrl" in mail.parameters;
  const template_parameters = own
    ? { ...mail.parameters }
    : { ...mail.parameters, unsubscribeUrl: unsubscribeUrl(ctx, { email, list, emailUid: uid, issuedAt: now }) };
  const { template, parameters } = checkParameters(mail.template, template_parameters);
  const attempt: Attempt = {
    aud: "send",
    uid,
    email,
    subject: mail.subject ?? template.subject(parameters),
    template: mail.template,
    template_parameters,
    initially_queued_at: now,
    retry: 0,
    last_queued_at: now,
    failure_job: checkedJob(ctx, mail.failureJob ?? DEFAULT_JOBS.failure),
    success_job: checkedJob(ctx, mail.successJob ?? DEFAULT_JOBS.success),
  };
  checkWritable(ctx, attempt, template);
  if (Buffer.byteLength(attemptEntry.encode(attempt)) > LONGEST_NEW)
    throw errors.invalid_email({ message: "The mail is larger than 256 KiB." });
  return attempt;
}

/** The same checks that the writer of mails makes, with its own words, before anything is queued. */
function checkWritable(ctx: Pick<Context, "config">, attempt: Attempt, template: Template): void {
  try {
    checkEnvelope(ctx.config, attempt, template);
  } catch (error) {
    if (!templateErrors.bad_mail.matches(error)) throw error;
    throw errors.invalid_email({ message: error.message, cause: error });
  }
}

/** Queues mails, all or none, and has the send job start now. */
export async function enqueueMails(
  ctx: EnqueueContext,
  mails: readonly NewMail[],
  options: EnqueueOptions = {},
): Promise<EnqueueAnswer> {
  const { callUid, maxLength = 0 } = options;
  const attempts = attemptsFor(ctx, mails);
  const flag = callUid === undefined ? undefined : { key: keys.callSeen({ call_uid: callUid }), ttl: CALL_FLAG_TTL };
  const answer = await push(ctx, attempts, maxLength, flag);
  return answer.ok ? { ...answer, uids: attempts.map(({ uid }) => uid) } : answer;
}

/**
 * Takes a group that another family handed over, once, whatever its length: what was promised to be sent is never refused.
 * The giver removes the group from its own list afterwards and then calls `forgetHandover`. Whoever has written the
 * attempts already gives them as they are written, in `raws`.
 */
export async function acceptHandover(
  ctx: EnqueueContext,
  group: { readonly uid: string; readonly attempts: readonly Attempt[]; readonly raws?: readonly string[] },
): Promise<"accepted" | "duplicate"> {
  const flag = { key: keys.handoverSeen({ group_uid: group.uid }), ttl: HANDOVER_FLAG_TTL };
  const answer = await push(ctx, group.attempts, 0, flag, group.raws);
  return answer.ok ? "accepted" : "duplicate";
}

export function forgetHandover(ctx: Pick<Context, "redis">, groupUid: string): Promise<void> {
  return forgetSoon(ctx, keys.handoverSeen({ group_uid: groupUid }));
}

/** How many mails wait in both lanes, for whoever would add more. */
export async function sendQueueLength({ redis }: Pick<Context, "redis">): Promise<number> {
  const lengths = await Promise.all(
    [keys.toSend(), keys.urgent()].map((key) => redis.commands.llen(redis.topology.key(key))),
  );
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** The address as it is kept, or the refusal that somebody hears. */
export function addressOf(text: string): string {
  const address = parseEmailAddress(text);
  if (address === undefined)
    throw errors.invalid_email({ message: "The address is not one that mail can be sent to." });
  return address;
}

async function push(
  ctx: EnqueueContext,
  attempts: readonly Attempt[],
  maxLength: number,
  flag: { readonly key: KeyName<"string">; readonly ttl: number } | undefined,
  written?: readonly string[],
) {
  if (attempts.length === 0 || attempts.length > MAX_PER_CALL)
    throw new RangeError(`${attempts.length} mails in one call: 1 to ${MAX_PER_CALL}, the rest in further calls`);
  const raws: Record<Lane, (string | Buffer)[]> = { ordinary: [], urgent: [] };
  for (const [at, attempt] of attempts.entries())
    raws[laneOf(attempt)].push(written?.[at] ?? attemptEntry.encode(attempt));
  const tally = new Tally(ctx);
  const block = tally.block((stats) => {
    for (const { initially_queued_at: at } of attempts) stats.incr(emailSendStats, "queued", { at });
  });
  // Without a flag the key is named all the same and never written.
  const answer = await ctx.redis.run(
    enqueue,
    [keys.toSend(), keys.urgent(), flag?.key ?? keys.callSeen({ call_uid: "none" }), ...tally.keys],
    [
      maxLength,
      flag ? flag.ttl * 1000 : 0,
      raws.ordinary.length,
      raws.urgent.length,
      ...raws.ordinary,
      ...raws.urgent,
      ...block,
    ],
  );
  if (answer.ok) {
    nudgeByName(ctx, "runners.emails.send");
    noteSteps(
      ctx,
      attempts.map(({ uid, email, template, initially_queued_at: at }) => ({
        channel: "email",
        uid,
        at,
        step: "queued",
        detail: template,
        address: email,
      })),
    );
  }
  return answer;
}

/** Has a recurring job of this room start now, where this process knows it. Named, since jobs stand above this file. */
export function nudgeByName(ctx: Pick<Context, "jobs">, name: `runners.emails.${string}`): void {
  const runner = ctx.jobs.runners?.get(name);
  if (runner) ctx.jobs.nudge(runner, {});
}

function checkedJob(ctx: Pick<Context, "jobs">, job: CallbackJob): CallbackJob {
  const parsed = CallbackJob.safeParse(job);
  if (!parsed.success) throw errors.invalid_email({ message: `${job.name}: its arguments must not have data_raw.` });
  if (!ctx.jobs.runners.has(job.name)) throw jobErrors.unknown_job({ message: `No job is named ${job.name}.` });
  return parsed.data;
}
