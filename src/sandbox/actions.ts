import { z } from "zod";
import { defineErrors } from "../kernel/errors.ts";
import type { ExpoSimulator } from "./expo.ts";
import type { SandboxMessage } from "./inbox.ts";
import { TWILIO_ENDS } from "./knobs.ts";
import { isLoopback } from "./loopback.ts";
import type { SesSimulator } from "./ses.ts";
import type { TwilioSimulator } from "./twilio.ts";

export const actionErrors = defineErrors({
  sandbox_action_unfit: {
    status: 409,
    doc: "This cannot happen to such a message.",
    hint: "Texts can be replied to; mail of the mail service bounces or is complained about; the rest is delivered or fails.",
  },
});

const Later = z.number().min(0).max(604_800).optional();

/** What a person or a provider may do to a message that was sent. */
export const MessageAction = z.discriminatedUnion("action", [
  z.strictObject({ action: z.literal("reply"), text: z.string().min(1).max(1600) }),
  z.strictObject({ action: z.literal("deliver"), after_seconds: Later }),
  z.strictObject({
    action: z.literal("bounce"),
    bounce_type: z.enum(["Permanent", "Transient", "Undetermined"]).optional(),
    bounce_sub_type: z.string().min(1).max(64).optional(),
    after_seconds: Later,
  }),
  z.strictObject({
    action: z.literal("complain"),
    feedback_type: z.string().min(1).max(64).optional(),
    after_seconds: Later,
  }),
  z.strictObject({
    action: z.literal("fail"),
    /** For a push the name of the receipt's error. */
    error: z.string().min(1).max(64).optional(),
    /** For a text its final status and the carrier's code. */
    status: z.enum(TWILIO_ENDS).optional(),
    code: z.int().min(10_000).max(99_999).optional(),
    after_seconds: Later,
  }),
  z.strictObject({ action: z.literal("unsubscribe") }),
  z.strictObject({ action: z.literal("resend") }),
]);
export type MessageAction = z.input<typeof MessageAction>;

interface Stage {
  readonly expo: ExpoSimulator;
  readonly twilio: TwilioSimulator;
  readonly ses: SesSimulator;
  readonly publicUrl: string;
}

/** Does it, and says what the house answered if it was called right away. */
export async function perform(
  stage: Stage,
  message: SandboxMessage,
  action: MessageAction,
): Promise<{ answered: number | null }> {
  const kind = message.direction === "in" ? "inbound text" : message.provider;
  const nothing = { answered: null };
  const unfit = () =>
    actionErrors.sandbox_action_unfit({ message: `${action.action} does not fit a message of ${kind}.` });
  if (message.direction === "in" || message.provider === "smtp") {
    if (action.action === "unsubscribe" && message.mail) return unsubscribe(stage, message);
    throw unfit();
  }
  switch (action.action) {
    case "reply":
      if (message.provider !== "twilio") throw unfit();
      return {
        answered: await stage.twilio.inbound({ from: message.to, to: message.from ?? undefined, body: action.text }),
      };
    case "deliver": {
      const afterSeconds = action.after_seconds;
      if (message.provider === "expo") stage.expo.settle(message, { afterSeconds });
      else if (message.provider === "twilio") stage.twilio.settle(message, { afterSeconds, status: "delivered" });
      else stage.ses.settle(message, { type: "Delivery" }, afterSeconds);
      return nothing;
    }
    case "bounce": {
      if (message.provider !== "ses") throw unfit();
      const bounceType = action.bounce_type ?? "Permanent";
      const bounceSubType = action.bounce_sub_type ?? "General";
      stage.ses.settle(message, { type: "Bounce", bounceType, bounceSubType }, action.after_seconds);
      return nothing;
    }
    case "complain":
      if (message.provider !== "ses") throw unfit();
      stage.ses.settle(
        message,
        { type: "Complaint", feedbackType: action.feedback_type ?? "abuse" },
        action.after_seconds,
      );
      return nothing;
    case "fail": {
      const afterSeconds = action.after_seconds;
      if (message.provider === "expo")
        stage.expo.settle(message, { afterSeconds, error: action.error ?? "DeviceNotRegistered" });
      else if (message.provider === "twilio")
        stage.twilio.settle(message, {
          afterSeconds,
          status: action.status ?? "undelivered",
          code: action.code ?? 30_003,
        });
      else throw unfit();
      return nothing;
    }
    case "unsubscribe":
      if (!message.mail) throw unfit();
      return unsubscribe(stage, message);
    case "resend":
      if (message.provider === "twilio") stage.twilio.repeat(message);
      else if (message.provider !== "ses" || !stage.ses.repeat(message)) throw unfit();
      return nothing;
  }
}

/**
 * Only the house itself is called: a mail may name any address, and the sandbox is nobody's messenger. Addresses of this
 * machine mean the house, wherever it listens today.
 */
async function unsubscribe(stage: Stage, { mail }: SandboxMessage): Promise<{ answered: number | null }> {
  const url = mail?.one_click_url;
  if (!url) throw actionErrors.sandbox_action_unfit({ message: "The mail offers no one-click unsubscription." });
  const { origin, hostname, pathname, search } = new URL(url);
  if (origin !== new URL(stage.publicUrl).origin && !isLoopback(hostname))
    throw actionErrors.sandbox_action_unfit({ message: "The mail's unsubscription leads out of this house." });
  const response = await fetch(new URL(`${pathname}${search}`, stage.publicUrl), {
    method: "POST",
    body: new URLSearchParams({ "List-Unsubscribe": "One-Click" }),
    redirect: "manual",
  });
  await response.arrayBuffer();
  return { answered: response.status };
}
