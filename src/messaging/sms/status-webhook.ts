import type { Context } from "../../jobs/context.ts";
import type { ReceivedWebhook } from "../../kernel/route.ts";
import { WebhookDesk } from "../../mechanisms/webhook-desk/index.ts";
import { isKnownSmsStatus, smsCategory } from "../../providers/sms.ts";
import { nudgeByName } from "./enqueue.ts";
import { E164, SID, type SmsEvent, shortWord, smsEvent } from "./entries.ts";
import { keys, UNPROCESSABLE_KEPT } from "./keys.ts";
import { smsWebhookStats } from "./stats.ts";
import { checkWebhook, isOurAccount, REFUSAL_STATUS } from "./webhook-check.ts";
import type { Form } from "./webhook-form.ts";

const LONGEST_FIELD = 500;

const desks = new WeakMap<object, WebhookDesk>();

function deskOf(ctx: Context): WebhookDesk {
  const known = desks.get(ctx);
  if (known) return known;
  const desk = new WebhookDesk(ctx, {
    stats: smsWebhookStats,
    event: keys.event(),
    unprocessable: keys.unprocessable(),
    kept: UNPROCESSABLE_KEPT,
    queued: () => nudgeByName(ctx, "runners.sms.receipt_reconciliation"),
    manyForged: (count) =>
      ctx.alerts.warning(
        "sms:webhook_signatures",
        `${count} webhooks in a row had a wrong signature: sms.publicUrl or the auth token may be wrong`,
      ),
  });
  desks.set(ctx, desk);
  return desk;
}

/** Takes one status webhook; answers the HTTP status. Promises are passed on as they are: each more would be for thousands. */
export function takeStatusWebhook(ctx: Context, received: ReceivedWebhook): Promise<number> {
  const at = ctx.clock.now();
  const desk = deskOf(ctx);
  const checked = checkWebhook(ctx.config, received);
  if (!checked.ok) {
    const { refusal } = checked;
    // A stranger's answer does not depend on whether it could be counted.
    return desk
      .take({ at, kind: "refused", refusal })
      .catch((error) => ctx.log.warn({ err: error, refusal }, "a refused webhook could not be counted"))
      .then(() => REFUSAL_STATUS[refusal]);
  }
  const read = readStatus(ctx, checked.form, at);
  if (read.reason === undefined) return desk.take({ at, kind: "news", raw: read.news }).then(taken);
  ctx.alerts.warning("sms:webhook_unprocessable", `a signed webhook makes no sense: ${read.reason}`);
  const cut = checked.form.entries().map(([name, value]) => [name, value.slice(0, LONGEST_FIELD)]);
  const raw = JSON.stringify({ received_at: at, reason: read.reason, fields: Object.fromEntries(cut) });
  return desk.take({ at, kind: "senseless", raw }).then(taken);
}

const taken = () => 200;

/** The entry for the queue of news, or why there is none. */
type ReadStatus = { readonly news: string | Buffer; readonly reason?: undefined } | { readonly reason: string };

function readStatus(ctx: Pick<Context, "config">, form: Form, at: number): ReadStatus {
  const [sid, status] = [form.get("MessageSid") ?? "", form.get("MessageStatus") ?? ""];
  if (!SID.test(sid)) return { reason: "MessageSid is missing or has an unknown form" };
  if (!isKnownSmsStatus(status)) return { reason: "MessageStatus is not a status" };
  const account = form.get("AccountSid");
  if (account !== undefined && !isOurAccount(ctx.config, account)) return { reason: "AccountSid is another's" };
  const error_code = shortWord(form.get("ErrorCode") ?? "") || null;
  if (error_code === null) return { news: plainNews(sid, status, at) };
  const to = form.get("To") ?? "";
  const event: SmsEvent = {
    sid,
    status,
    error_code,
    error_message: null,
    date_updated: null,
    information_received_at: at,
    received_via: "webhook",
    // The message may have ended here long ago, and the number must be known all the same.
    ...(smsCategory(status) === "failure" && E164.test(to) ? { to } : {}),
  };
  return { news: smsEvent.encode(event) };
}

/** What the codec would write, for news without an error: by now both words are of letters and digits only. */
const plainNews = (sid: string, status: string, at: number): string =>
  `{"sid":"${sid}","status":"${status}","error_code":null,"error_message":null,"date_updated":null,` +
  `"information_received_at":${at},"received_via":"webhook"}`;
