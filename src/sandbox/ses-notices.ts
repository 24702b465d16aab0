import type { Moment, SandboxMessage } from "./inbox.ts";
import type { SesKnobs } from "./knobs.ts";

export type Notice =
  | { readonly type: "Delivery" }
  | { readonly type: "Bounce"; readonly bounceType: string; readonly bounceSubType: string }
  | { readonly type: "Complaint"; readonly feedbackType: string };

export type Outcome = SesKnobs["rules"][number]["outcome"];

const SIMULATOR = /^(success|bounce|ooto|complaint|suppressionlist)(\+[^@]*)?@simulator\.amazonses\.com$/i;

const NOTICES: Readonly<Record<Outcome, readonly Notice[]>> = {
  success: [{ type: "Delivery" }],
  bounce: [{ type: "Bounce", bounceType: "Permanent", bounceSubType: "General" }],
  ooto: [{ type: "Delivery" }, { type: "Bounce", bounceType: "Transient", bounceSubType: "General" }],
  complaint: [{ type: "Delivery" }, { type: "Complaint", feedbackType: "abuse" }],
  suppressionlist: [{ type: "Bounce", bounceType: "Permanent", bounceSubType: "OnAccountSuppressionList" }],
  silent: [],
};

/** What becomes of a mail, by its receiver: a rule first, then the simulator's addresses; everybody else gets it. */
export function outcomeOf(address: string, rules: SesKnobs["rules"]): Outcome {
  const rule = rules.find(({ pattern }) => patternOf(pattern).test(address));
  if (rule) return rule.outcome;
  return (SIMULATOR.exec(address)?.[1]?.toLowerCase() as Outcome | undefined) ?? "success";
}

export function noticesOf(outcome: Outcome): readonly Notice[] {
  return NOTICES[outcome];
}

export function statusOf(notice: Notice): string {
  return { Delivery: "delivered", Bounce: "bounced", Complaint: "complained" }[notice.type];
}

/** The error that the message's history shows. */
export function errorOf(notice: Notice): string | undefined {
  if (notice.type === "Bounce") return `${notice.bounceType}/${notice.bounceSubType}`;
  return notice.type === "Complaint" ? notice.feedbackType : undefined;
}

/** The notice that a step of a message's history tells of. */
export function noticeIn({ status, error = "" }: Moment): Notice | undefined {
  if (status === "delivered") return { type: "Delivery" };
  if (status === "complained") return { type: "Complaint", feedbackType: error };
  const [bounceType = "", bounceSubType = ""] = error.split("/");
  return status === "bounced" ? { type: "Bounce", bounceType, bounceSubType } : undefined;
}

/** The notification as the mail service words it. */
export function notificationOf(notice: Notice, message: SandboxMessage, now: number): Record<string, unknown> {
  const timestamp = iso(now);
  const recipient = { emailAddress: message.to };
  const mail = {
    timestamp: iso(message.at),
    source: message.from,
    sourceArn: "arn:aws:ses:us-east-1:000000000000:identity/sandbox",
    sendingAccountId: "000000000000",
    messageId: message.provider_id,
    destination: [message.to],
    headersTruncated: false,
    headers: (message.mail?.headers ?? []).map(({ name, value }) => ({ name, value })),
    tags: Object.fromEntries(Object.entries(tagsOf(message)).map(([name, value]) => [name, [value]])),
    commonHeaders: { from: [message.from], to: [message.to], subject: message.subject },
  };
  const feedbackId = `${message.provider_id}-feedback`;
  switch (notice.type) {
    case "Delivery":
      return {
        notificationType: "Delivery",
        mail,
        delivery: {
          timestamp,
          processingTimeMillis: Math.round(Math.max(0, now - message.at) * 1000),
          recipients: [message.to],
          smtpResponse: "250 2.6.0 Message received",
          reportingMTA: "a8-70.smtp-out.amazonses.com",
        },
      };
    case "Bounce":
      return {
        notificationType: "Bounce",
        mail,
        bounce: {
          timestamp,
          feedbackId,
          bounceType: notice.bounceType,
          bounceSubType: notice.bounceSubType,
          bouncedRecipients: [{ ...recipient, action: "failed", status: "5.1.1", diagnosticCode: "smtp; 550 5.1.1" }],
        },
      };
    case "Complaint":
      return {
        notificationType: "Complaint",
        mail,
        complaint: {
          timestamp,
          feedbackId,
          complaintFeedbackType: notice.feedbackType,
          complainedRecipients: [recipient],
        },
      };
  }
}

function tagsOf({ fields }: SandboxMessage): Readonly<Record<string, string>> {
  return (fields.tags as Record<string, string> | undefined) ?? {};
}

function patternOf(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "i");
}

function iso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
