import type { Context } from "../../jobs/context.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { smsSettings } from "../../providers/settings.ts";
import { isKnownSmsStatus, smsCategory } from "../../providers/sms.ts";
import { nudgeByName } from "./enqueue.ts";
import { E164, SID, type SmsEvent, shortWord, smsEvent } from "./entries.ts";
import { keys, UNPROCESSABLE_KEPT } from "./keys.ts";
import { acceptWebhooks } from "./scripts.ts";
import { smsWebhookStats } from "./stats.ts";
import { checkWebhook, REFUSAL_STATUS, type ReceivedWebhook, type Refusal } from "./webhook-check.ts";

const GROUP = 500;
/** So many forged webhooks in a row, and none that fits, mean that our own address or token is wrong. */
const SUSPICIOUS = 20;
const LONGEST_FIELD = 500;

interface Taken {
  readonly at: number;
  readonly event?: SmsEvent;
  readonly unprocessable?: string;
  readonly refusal?: Refusal;
}

interface Waiting {
  readonly taken: Taken;
  done(): void;
  failed(error: unknown): void;
}

/**
 * Takes status webhooks. Those that arrive while a call to Redis is under way form the next group, so that a burst costs
 * a few calls; each is answered after the call that counted it. A process that dies has not answered, and the provider
 * sends again or is asked later.
 */
class WebhookDesk {
  readonly #ctx: Context;
  readonly #waiting: Waiting[] = [];
  #busy = false;
  #forged = 0;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  take(taken: Taken): Promise<void> {
    this.#watch(taken);
    return new Promise<void>((done, failed) => {
      this.#waiting.push({ taken, done, failed });
      if (!this.#busy) void this.#work();
    });
  }

  #watch({ refusal }: Taken): void {
    if (refusal === undefined) this.#forged = 0;
    else if (refusal === "signature_invalid") this.#forged += 1;
    if (this.#forged !== SUSPICIOUS) return;
    const text = `${SUSPICIOUS} webhooks in a row had a wrong signature: sms.publicUrl or the auth token may be wrong`;
    this.#ctx.alerts.warning("sms:webhook_signatures", text);
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
    const events = group.flatMap(({ event }) => (event ? [smsEvent.encode(event)] : []));
    const refused = group.flatMap(({ unprocessable }) => (unprocessable === undefined ? [] : [unprocessable]));
    const tally = new Tally(ctx);
    const block = tally.block((stats) => {
      for (const { at, event, refusal } of group) {
        stats.incr(smsWebhookStats, "received", { at });
        if (refusal !== undefined) stats.incr(smsWebhookStats, refusal, { at });
        else {
          stats.incr(smsWebhookStats, "verified", { at });
          stats.incr(smsWebhookStats, event ? "accepted" : "unprocessable", { at });
        }
      }
    });
    await ctx.redis.run(
      acceptWebhooks,
      [keys.event(), keys.unprocessable(), ...tally.keys],
      [UNPROCESSABLE_KEPT, events.length, refused.length, ...events, ...refused, ...block],
    );
    if (events.length > 0) nudgeByName(ctx, "runners.sms.receipt_reconciliation");
  }
}

const desks = new WeakMap<object, WebhookDesk>();

function deskOf(ctx: Context): WebhookDesk {
  const desk = desks.get(ctx) ?? new WebhookDesk(ctx);
  desks.set(ctx, desk);
  return desk;
}

/** Takes one status webhook; answers the HTTP status. */
export async function takeStatusWebhook(ctx: Context, received: ReceivedWebhook): Promise<number> {
  const at = ctx.clock.now();
  const checked = checkWebhook(ctx.config, received);
  if (!checked.ok) {
    const { refusal } = checked;
    // A stranger's answer does not depend on whether it could be counted.
    await deskOf(ctx)
      .take({ at, refusal })
      .catch((error) => ctx.log.warn({ err: error, refusal }, "a refused webhook could not be counted"));
    return REFUSAL_STATUS[refusal];
  }
  const read = readStatus(ctx, checked.fields, at);
  if ("reason" in read) {
    ctx.alerts.warning("sms:webhook_unprocessable", `a signed webhook makes no sense: ${read.reason}`);
    const shown = Object.fromEntries([...checked.fields].map(([name, value]) => [name, value.slice(0, LONGEST_FIELD)]));
    await deskOf(ctx).take({
      at,
      unprocessable: JSON.stringify({ received_at: at, reason: read.reason, fields: shown }),
    });
  } else await deskOf(ctx).take({ at, event: read.event });
  return 200;
}

function readStatus(
  ctx: Pick<Context, "config">,
  fields: ReadonlyMap<string, string>,
  at: number,
): { readonly event: SmsEvent } | { readonly reason: string } {
  const [sid, status] = [fields.get("MessageSid") ?? "", fields.get("MessageStatus") ?? ""];
  if (!SID.test(sid)) return { reason: "MessageSid is missing or has an unknown form" };
  if (!isKnownSmsStatus(status)) return { reason: "MessageStatus is not a status" };
  const [account, ours] = [fields.get("AccountSid"), ctx.config.get(smsSettings.twilioAccountSid)];
  if (account !== undefined && ours !== undefined && account !== ours) return { reason: "AccountSid is another's" };
  const error_code = shortWord(fields.get("ErrorCode") ?? "") || null;
  const to = fields.get("To") ?? "";
  return {
    event: {
      sid,
      status,
      error_code,
      error_message: null,
      date_updated: null,
      information_received_at: at,
      received_via: "webhook",
      // The message may have ended here long ago, and the number must be known all the same.
      ...(error_code !== null && smsCategory(status) === "failure" && E164.test(to) ? { to } : {}),
    },
  };
}
