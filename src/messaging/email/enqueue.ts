import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { parseEmailAddress } from "../contacts/service.ts";
import { book, checkParameters } from "../email_templates/service.ts";
import { type Attempt, attemptEntry, CallbackJob, LONGEST_ENTRY, Subject } from "./entries.ts";
import { errors } from "./errors.ts";
import { CALL_FLAG_TTL, HANDOVER_FLAG_TTL, keys } from "./keys.ts";
import type { Lane } from "./line.ts";
import { enqueue } from "./scripts.ts";
import { emailSendStats } from "./stats.ts";
import { unsubscribeUrl } from "./unsubscribe-token.ts";

/** How many mails one call takes; more are handed over in further calls. */
export const MAX_PER_CALL = 500;

type EnqueueContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "jobs">;

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

/** Makes queue entries of mails. Whatever could poison the queue is refused here, where somebody hears of it. */
export function attemptsFor(
  ctx: Pick<Context, "clock" | "config" | "jobs">,
  mails: readonly NewMail[],
): readonly Attempt[] {
  const now = ctx.clock.now();
  return mails.map((mail): Attempt => {
    const uid = mail.uid ?? newUid("em");
    const email = addressOf(mail.email);
    const { list } = book.get(mail.template);
    const own = list === null || "unsubscribeUrl" in mail.parameters;
    const template_parameters = own
      ? { ...mail.parameters }
      : { ...mail.parameters, unsubscribeUrl: unsubscribeUrl(ctx, { email, list, emailUid: uid, issuedAt: now }) };
    const checked = checkParameters(mail.template, template_parameters);
    const subject = Subject.safeParse(mail.subject ?? checked.template.subject(checked.parameters));
    if (!subject.success)
      throw errors.invalid_email({ message: "The subject must be one line of 1 to 250 characters." });
    return {
      aud: "send",
      uid,
      email,
      subject: subject.data,
      template: mail.template,
      template_parameters,
      initially_queued_at: now,
      retry: 0,
      last_queued_at: now,
      failure_job: checkedJob(ctx, mail.failureJob ?? DEFAULT_JOBS.failure),
      success_job: checkedJob(ctx, mail.successJob ?? DEFAULT_JOBS.success),
    };
  });
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
 * The giver removes the group from its own list afterwards and then calls `forgetHandover`.
 */
export async function acceptHandover(
  ctx: EnqueueContext,
  group: { readonly uid: string; readonly attempts: readonly Attempt[] },
): Promise<"accepted" | "duplicate"> {
  const flag = { key: keys.handoverSeen({ group_uid: group.uid }), ttl: HANDOVER_FLAG_TTL };
  const answer = await push(ctx, group.attempts, 0, flag);
  return answer.ok ? "accepted" : "duplicate";
}

export async function forgetHandover(ctx: Pick<Context, "redis">, groupUid: string): Promise<void> {
  await ctx.redis.commands.del(ctx.redis.topology.key(keys.handoverSeen({ group_uid: groupUid })));
}

/** How many mails wait in both lanes, for whoever would add more. */
export async function sendQueueLength({ redis }: Pick<Context, "redis">): Promise<number> {
  const lengths = await Promise.all(
    [keys.toSend(), keys.urgent()].map((key) => redis.commands.llen(redis.topology.key(key))),
  );
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** A mail that is dead after a while and whose reader asked for it just now goes before everything else. */
export function laneOf({
  template: slug,
  template_parameters,
}: Pick<Attempt, "template" | "template_parameters">): Lane {
  const template = book.templates.find((known) => known.slug === slug);
  if (!template || template.list !== null) return "ordinary";
  const parameters = template.parameters.safeParse(template_parameters);
  return parameters.success && template.lifetime(parameters.data) !== undefined ? "urgent" : "ordinary";
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
) {
  if (attempts.length === 0 || attempts.length > MAX_PER_CALL)
    throw new RangeError(`${attempts.length} mails in one call: 1 to ${MAX_PER_CALL}, the rest in further calls`);
  const raws: Record<Lane, (string | Buffer)[]> = { ordinary: [], urgent: [] };
  for (const attempt of attempts) {
    const raw = attemptEntry.encode(attempt);
    if (Buffer.byteLength(raw) > LONGEST_ENTRY)
      throw errors.invalid_email({ message: "The mail is larger than 256 KiB." });
    raws[laneOf(attempt)].push(raw);
  }
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
  if (answer.ok) nudgeByName(ctx, "runners.emails.send");
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
  if (!ctx.jobs.runners.has(job.name)) throw errors.unknown_email_job({ message: `No job is named ${job.name}.` });
  return parsed.data;
}
