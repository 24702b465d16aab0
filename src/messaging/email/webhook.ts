import { resolve } from "node:path";
import { sandboxOf } from "../../infrastructure/sandbox/service.ts";
import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import type { ReceivedWebhook } from "../../kernel/route.ts";
import { WebhookDesk } from "../../mechanisms/webhook-desk/index.ts";
import { sesNotificationOf } from "../../providers/ses-notification.ts";
import { emailSettings } from "../../providers/settings.ts";
import { type SnsEnvelope, SnsVerifier } from "../../providers/sns.ts";
import { nudgeByName } from "./enqueue.ts";
import { newsEntry } from "./entries.ts";
import { keys, UNPROCESSABLE_KEPT, WEBHOOK_FLAG_TTL } from "./keys.ts";
import { emailWebhookStats } from "./stats.ts";

/** The most bytes of a notification. */
export const LARGEST_BODY = 1_048_576;
const LONGEST_KEPT = 4_096;
/** Seconds between two notes that topics report: people only want to see that they do. */
const NOTE_EVERY = 1;
const SANDBOX_TOPIC = "arn:aws:sns:us-east-1:000000000000:carillon-email";

/** Where notifications are handed in, and who judges them: by address of the topics. */
interface Office {
  readonly desk: WebhookDesk;
  readonly verifiers: Map<string, SnsVerifier>;
  /** When it was last noted that a topic reported. */
  notedAt: number;
}

const offices = new WeakMap<object, Office>();

function officeOf(ctx: Context): Office {
  const known = offices.get(ctx);
  if (known) return known;
  const desk = new WebhookDesk(ctx, {
    stats: emailWebhookStats,
    event: keys.event(),
    unprocessable: keys.unprocessable(),
    kept: UNPROCESSABLE_KEPT,
    flagTtl: WEBHOOK_FLAG_TTL,
    queued: () => nudgeByName(ctx, "runners.emails.receipt_reconciliation"),
  });
  const office = { desk, verifiers: new Map(), notedAt: Number.NEGATIVE_INFINITY };
  offices.set(ctx, office);
  return office;
}

/** The judge of a topic. The simulated one counts only while mails go to the sandbox of this very process. */
function verifierFor(ctx: Context, topic: unknown): SnsVerifier {
  const { config, clock, log } = ctx;
  const { verifiers } = officeOf(ctx);
  const simulated = topic === SANDBOX_TOPIC ? simulatedAt(ctx) : undefined;
  const baseUrl = simulated ?? config.get(emailSettings.snsBaseUrl);
  const known = verifiers.get(baseUrl ?? "");
  if (known) return known;
  const verifier = new SnsVerifier({
    topicArns: simulated === undefined ? config.get(emailSettings.snsTopicArns) : [SANDBOX_TOPIC],
    clock,
    log,
    ...(baseUrl === undefined ? { shelf: shelfOf(config) } : { baseUrl }),
  });
  verifiers.set(baseUrl ?? "", verifier);
  return verifier;
}

/** Where certificates outlive the process; nowhere without a data folder. */
function shelfOf(config: Config): string | undefined {
  const data = config.effective.find(({ setting }) => setting.name === "data.dir")?.value;
  return typeof data === "string" && data !== "" ? resolve(data, "sns-certificates") : undefined;
}

function simulatedAt(ctx: Context): string | undefined {
  if (ctx.config.get(emailSettings.provider).length > 0) return undefined;
  try {
    return sandboxOf(ctx).url;
  } catch {
    return undefined;
  }
}

/**
 * Takes one notification; answers the HTTP status. The topic comes again after 429 and 5xx alone, so passing trouble of our
 * own is a 503, and whatever would be no better the second time is not.
 */
export async function takeNotification(
  ctx: Context,
  { headers, body }: Pick<ReceivedWebhook, "headers" | "body">,
): Promise<number> {
  const at = ctx.clock.now();
  try {
    const verifier = verifierFor(ctx, headers["x-amz-sns-topic-arn"]);
    const verdict = await verifier.verify(headers, body);
    if (verdict.ok) {
      const status = await takeEnvelope(ctx, verifier, verdict.envelope, at);
      await noteReport(ctx, at);
      return status;
    }
    ctx.log.warn({ reason: verdict.reason }, "a notification about mails was refused");
    await officeOf(ctx).desk.take({ at, kind: "refused", refusal: verdict.counter });
    return verdict.status;
  } catch (error) {
    ctx.log.error({ err: error }, "a notification about mails could not be taken");
    return 503;
  }
}

/** For people who wonder whether topics still report; a note that is lost changes nothing for the notification. */
async function noteReport(ctx: Context, at: number): Promise<void> {
  const office = officeOf(ctx);
  if (Math.abs(at - office.notedAt) < NOTE_EVERY) return;
  office.notedAt = at;
  const { commands, topology } = ctx.redis;
  try {
    await commands.set(topology.key(keys.lastWebhook()), keys.lastWebhook.codec.encode(at));
  } catch (error) {
    ctx.log.warn({ err: error }, "nobody can see when a topic last reported on mails");
  }
}

async function takeEnvelope(ctx: Context, verifier: SnsVerifier, envelope: SnsEnvelope, at: number): Promise<number> {
  const { desk } = officeOf(ctx);
  const { Type, TopicArn, MessageId, Message } = envelope;
  const senseless = (reason: string) =>
    desk.take({
      at,
      kind: "senseless",
      raw: JSON.stringify({ received_at: at, reason, message: Message.slice(0, LONGEST_KEPT) }),
    });
  if (Type === "SubscriptionConfirmation") {
    if (!(await verifier.confirm(envelope))) {
      await senseless("the subscription could not be confirmed");
      return 503;
    }
    await desk.take({ at, kind: "nothing" });
    ctx.alerts.ops(`the topic ${TopicArn} reports on mails from now on`);
    return 200;
  }
  if (Type === "UnsubscribeConfirmation") {
    await desk.take({ at, kind: "nothing" });
    const text = `the topic ${TopicArn} reports no more on mails: receipts will be missing until it is subscribed again`;
    ctx.alerts.warning("emails:topic_unsubscribed", text, { urgent: true });
    return 202;
  }
  const read = sesNotificationOf(Message);
  if (read.kind === "unprocessable") {
    ctx.alerts.warning("emails:webhook_unprocessable", `a signed notification makes no sense: ${read.reason}`);
    await senseless(read.reason);
  } else if (read.kind === "ignored") await desk.take({ at, kind: "nothing" });
  else {
    const { messageId: message_id, uid, notification } = read.event;
    if (read.replaced) ctx.log.warn({ message_id, said: read.replaced }, "a report on a mail says what cannot be kept");
    const about = uid === undefined ? { message_id } : { message_id, uid };
    const raw = newsEntry.encode({ ...about, notification, received_at: at } as Parameters<typeof newsEntry.encode>[0]);
    await desk.take({ at, kind: "news", raw, flag: keys.webhookSeen({ sns_message_id: MessageId }) });
  }
  return 202;
}
