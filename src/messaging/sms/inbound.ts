import type { Context } from "../../jobs/context.ts";
import type { ReceivedWebhook } from "../../kernel/route.ts";
import { E164 } from "./entries.ts";
import { settings } from "./settings.ts";
import { checkWebhook, REFUSAL_STATUS } from "./webhook-check.ts";
import { holdWish } from "./wishes.ts";

const STOP_TEXTS = new Set(["stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "revoke"]);
/** Words that end texts whatever follows them; the others are too common to stand for STOP in a sentence. */
const STOP_FIRST_WORDS = new Set(["stop", "stopall", "unsubscribe"]);
const START_TEXTS = new Set(["start", "yes", "unstop"]);

export type Wish = "stop" | "start" | "none";

/** What a person wants who wrote this. The provider's own word comes first; a word inside a sentence never counts. */
export function wishOf(body: string, optOutType?: string): Wish {
  const text = body
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s]/gu, "")
    .trim();
  const [first = ""] = text.split(/\s+/);
  if (optOutType === "STOP" || STOP_TEXTS.has(text) || STOP_FIRST_WORDS.has(first)) return "stop";
  return optOutType === "START" || START_TEXTS.has(text) ? "start" : "none";
}

export interface InboundAnswer {
  readonly status: number;
  /** Of the reply; nothing for answers without one. */
  readonly body?: string;
}

/** Takes a text that a person sent to us, and answers with the reply for the provider to send. */
export async function takeInbound(ctx: Context, received: ReceivedWebhook): Promise<InboundAnswer> {
  const checked = checkWebhook(ctx.config, received);
  if (!checked.ok) return { status: REFUSAL_STATUS[checked.refusal] };
  const { form } = checked;
  const [from, to, body] = [form.get("From"), form.get("To"), form.get("Body")];
  if (from === undefined || !E164.test(from) || to === undefined || body === undefined) {
    ctx.alerts.error(new Error("an inbound text lacks From, To or Body"));
    return { status: 200, body: twiml() };
  }
  const optOutType = form.get("OptOutType");
  const wish = wishOf(body, optOutType);
  ctx.alerts.ops(`A text came in${wish === "none" ? "" : ` that says ${wish.toUpperCase()}`}.`);
  if (wish !== "none") {
    try {
      await holdWish(ctx, from, wish);
    } catch (error) {
      ctx.alerts.error(error, `a text that says ${wish.toUpperCase()} could not be kept`);
      return { status: 503, body: twiml(ctx.config.get(settings.replyError)) };
    }
  }
  // Where the provider handles such words itself, it has replied already.
  return optOutType ? { status: 204 } : { status: 200, body: twiml(ctx.config.get(REPLIES[wish])) };
}

const REPLIES = { stop: settings.replyStopped, start: settings.replyRestarted, none: settings.replyReceived } as const;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

function twiml(text?: string): string {
  const message = text ? `<Message>${text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign]!)}</Message>` : "";
  return `<?xml version="1.0" encoding="UTF-8"?><Response>${message}</Response>`;
}
