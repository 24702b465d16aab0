import type { IncomingHttpHeaders } from "node:http";
import { sandboxOf } from "../../infrastructure/sandbox/service.ts";
import type { Context } from "../../jobs/context.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { sesNotificationOf } from "../../providers/ses-notification.ts";
import { emailSettings } from "../../providers/settings.ts";
import { type SnsEnvelope, SnsVerifier } from "../../providers/sns.ts";
import { nudgeByName } from "./enqueue.ts";
import { newsEntry } from "./entries.ts";
import { keys, UNPROCESSABLE_KEPT, WEBHOOK_FLAG_TTL } from "./keys.ts";
import { acceptWebhooks } from "./scripts.ts";
import { emailWebhookStats } from "./stats.ts";

export const LARGEST_BODY = 1_048_576;
const GROUP = 500;
const LONGEST_KEPT = 4_096;
const SANDBOX_TOPIC = "arn:aws:sns:us-east-1:000000000000:carillon-email";

type Refusal =
  | "signature_missing"
  | "signature_invalid"
  | "body_read_error"
  | "body_max_size_exceeded"
  | "body_parse_error";

/** How one notification counts, and what it brings. */
interface Taken {
  readonly at: number;
  readonly refusal?: Refusal;
  /** News, with the id by which its repeats are known. */
  readonly news?: { readonly id: string; readonly raw: string | Buffer };
  readonly unprocessable?: string;
}

interface Waiting {
  readonly taken: Taken;
  done(): void;
  failed(error: unknown): void;
}

/**
 * Takes notifications. Those that arrive while a call to Redis is under way form the next group, so that a burst costs a
 * few calls; each is answered after the call that counted it. A process that dies has not answered, and the topic sends
 * again.
 */
class WebhookDesk {
  readonly #ctx: Context;
  readonly #verifiers = new Map<string, SnsVerifier>();
  readonly #waiting: Waiting[] = [];
  #busy = false;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  take(taken: Taken): Promise<void> {
    return new Promise<void>((done, failed) => {
      this.#waiting.push({ taken, done, failed });
      if (!this.#busy) void this.#work();
    });
  }

  /** The judge of a topic. The simulated one counts only while mails go to the sandbox of this very process. */
  verifierFor(topic: unknown): SnsVerifier {
    const { config, clock } = this.#ctx;
    const simulated = topic === SANDBOX_TOPIC ? simulatedAt(this.#ctx) : undefined;
    const baseUrl = simulated ?? config.get(emailSettings.snsBaseUrl);
    const known = this.#verifiers.get(baseUrl ?? "");
    if (known) return known;
    const topicArns = simulated === undefined ? config.get(emailSettings.snsTopicArns) : [SANDBOX_TOPIC];
    const verifier = new SnsVerifier({ topicArns, clock, ...(baseUrl === undefined ? {} : { baseUrl }) });
    this.#verifiers.set(baseUrl ?? "", verifier);
    return verifier;
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP);
      try {
        await this.#store(group.map(({ taken }) => taken));
        for (const { done } of group) done();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    this.#busy = false;
  }

  async #store(group: readonly Taken[]): Promise<void> {
    const ctx = this.#ctx;
    const news = group.flatMap((taken) => taken.news ?? []);
    const refused = group.flatMap(({ unprocessable }) => (unprocessable === undefined ? [] : [unprocessable]));
    const tally = new Tally(ctx);
    const block = tally.block((stats) => {
      for (const { at, refusal, unprocessable } of group) {
        stats.incr(emailWebhookStats, "received", { at });
        if (refusal !== undefined) stats.incr(emailWebhookStats, refusal, { at });
        else {
          stats.incr(emailWebhookStats, "verified", { at });
          stats.incr(emailWebhookStats, unprocessable === undefined ? "accepted" : "unprocessable", { at });
        }
      }
    });
    const flags = news.map(({ id }) => keys.webhookSeen({ sns_message_id: id }));
    const queued = await ctx.redis.run(
      acceptWebhooks,
      [keys.event(), keys.unprocessable(), ...flags, ...tally.keys],
      [
        UNPROCESSABLE_KEPT,
        WEBHOOK_FLAG_TTL * 1000,
        news.length,
        refused.length,
        ...news.map(({ raw }) => raw),
        ...refused,
        ...block,
      ],
    );
    if (queued > 0) nudgeByName(ctx, "runners.emails.receipt_reconciliation");
  }
}

const desks = new WeakMap<object, WebhookDesk>();

function deskOf(ctx: Context): WebhookDesk {
  const desk = desks.get(ctx) ?? new WebhookDesk(ctx);
  desks.set(ctx, desk);
  return desk;
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
  received: { readonly headers: IncomingHttpHeaders; readonly body: Buffer | undefined },
): Promise<number> {
  const at = ctx.clock.now();
  const desk = deskOf(ctx);
  const { headers, body = Buffer.alloc(0) } = received;
  try {
    if (body.length > LARGEST_BODY) {
      await desk.take({ at, refusal: "body_max_size_exceeded" });
      return 413;
    }
    const verifier = desk.verifierFor(headers["x-amz-sns-topic-arn"]);
    const verdict = await verifier.verify(headers, body);
    if (verdict.ok) return await takeEnvelope(ctx, verifier, verdict.envelope, at);
    ctx.log.warn({ reason: verdict.reason }, "a notification about mails was refused");
    await desk.take({ at, refusal: verdict.counter });
    return verdict.status;
  } catch (error) {
    ctx.log.error({ err: error }, "a notification about mails could not be taken");
    return 503;
  }
}

async function takeEnvelope(ctx: Context, verifier: SnsVerifier, envelope: SnsEnvelope, at: number): Promise<number> {
  const desk = deskOf(ctx);
  const { Type, TopicArn, MessageId, Message } = envelope;
  const senseless = (reason: string) =>
    desk.take({
      at,
      unprocessable: JSON.stringify({ received_at: at, reason, message: Message.slice(0, LONGEST_KEPT) }),
    });
  if (Type === "SubscriptionConfirmation") {
    if (!(await verifier.confirm(envelope))) {
      await senseless("the subscription could not be confirmed");
      return 503;
    }
    await desk.take({ at });
    ctx.alerts.ops(`the topic ${TopicArn} reports on mails from now on`);
    return 200;
  }
  if (Type === "UnsubscribeConfirmation") {
    await desk.take({ at });
    const text = `the topic ${TopicArn} reports no more on mails: receipts will be missing until it is subscribed again`;
    ctx.alerts.warning("emails:topic_unsubscribed", text, { urgent: true });
    return 202;
  }
  const read = sesNotificationOf(Message);
  if (read.kind === "unprocessable") {
    ctx.alerts.warning("emails:webhook_unprocessable", `a signed notification makes no sense: ${read.reason}`);
    await senseless(read.reason);
  } else if (read.kind === "ignored") await desk.take({ at });
  else {
    const { messageId: message_id, uid, notification } = read.event;
    const about = uid === undefined ? { message_id } : { message_id, uid };
    const raw = newsEntry.encode({ ...about, notification, received_at: at } as Parameters<typeof newsEntry.encode>[0]);
    await desk.take({ at, news: { id: MessageId, raw } });
  }
  return 202;
}
