import { extraOf } from "./failure.ts";
import { isRecord, jsonOf } from "./http-exchange.ts";

/** What SES tells through a topic about a mail that it had accepted. */
export type SesNotification =
  | {
      readonly kind: "event";
      readonly event: MailEvent;
      /** What was said where the event has a word or an id that can be kept instead, by the name of its field. */
      readonly replaced?: Replaced;
    }
  /** Understood, and of no use here. */
  | { readonly kind: "ignored"; readonly type: string }
  | { readonly kind: "unprocessable"; readonly reason: string };

export interface MailEvent {
  readonly messageId: string;
  /** Our own uid of the mail, where the report repeats the tag or the header that it was sent with. */
  readonly uid?: string;
  readonly notification:
    | { readonly type: "Delivery" }
    | {
        readonly type: "Bounce";
        readonly reason: { readonly primary: "Permanent" | "Transient" | "Undetermined"; readonly secondary: string };
        readonly destination: readonly string[];
        readonly bounced_recipients: readonly string[];
      }
    | {
        readonly type: "Complaint";
        readonly feedback_type: string | null;
        readonly destination: readonly string[];
        readonly complained_recipients: readonly string[];
      };
}

const IGNORED = new Set([
  "Send",
  "Open",
  "Click",
  "DeliveryDelay",
  "Rendering Failure",
  "Subscription",
  "AmazonSnsSubscriptionSucceeded",
]);
/** Sent as plain text when a topic is connected to an identity. */
const VALIDATION = /^Successfully validated SNS topic/;
const UID_TAG = "uid";
const UID_HEADER = "x-carillon-email-uid";
const UID = /^[A-Za-z0-9_-]{1,128}$/;
const PRIMARY = ["Permanent", "Transient", "Undetermined"] as const;
/** The most characters of an id and of a kind that those who read events understand. */
export const LONGEST_MESSAGE_ID = 512;
export const LONGEST_KIND = 64;
const KIND = new RegExp(`^[A-Za-z0-9_-]{1,${LONGEST_KIND}}$`);
const UNKNOWN_KIND = "Other";

type Replaced = Readonly<Record<string, string>>;

/** Reads the `Message` of a verified envelope. Unknown fields are ignored, since Amazon adds some from time to time. */
export function sesNotificationOf(message: string): SesNotification {
  if (VALIDATION.test(message)) return { kind: "ignored", type: "validation" };
  const body = jsonOf(Buffer.from(message));
  if (!isRecord(body)) return { kind: "unprocessable", reason: "the message is not a JSON object" };
  const type = body.notificationType ?? body.eventType;
  if (typeof type !== "string") return { kind: "unprocessable", reason: "the message has no type" };
  if (IGNORED.has(type)) return { kind: "ignored", type };
  const mail = isRecord(body.mail) ? body.mail : {};
  if (typeof mail.messageId !== "string" || mail.messageId === "")
    return { kind: "unprocessable", reason: `a ${type} without mail.messageId` };
  const replaced: Record<string, string> = {};
  const notification = notificationOf(type, body, textsIn(mail.destination), replaced);
  if (typeof notification === "string") return { kind: "unprocessable", reason: notification };
  // No mail of ours has such an id. Its beginning still tells one report from another, and whom it is about counts.
  const messageId = mail.messageId.slice(0, LONGEST_MESSAGE_ID);
  if (messageId !== mail.messageId) replaced.messageId = extraOf(mail.messageId);
  const uid = uidIn(mail);
  const event = { messageId, ...(uid === undefined ? {} : { uid }), notification };
  return Object.keys(replaced).length === 0 ? { kind: "event", event } : { kind: "event", event, replaced };
}

/**
 * A kind as it may stand in queues and statistics. An odd one must not cost the report: an address that bounced or
 * complained is to be suppressed whatever the kind.
 */
function kindOf(field: string, said: string, replaced: Record<string, string>): string {
  if (KIND.test(said)) return said;
  replaced[field] = extraOf(said);
  return UNKNOWN_KIND;
}

/** Events of a configuration set repeat the tags; notifications of an identity repeat the headers, if it is told to. */
function uidIn({ tags, headers }: Readonly<Record<string, unknown>>): string | undefined {
  const tagged = isRecord(tags) ? textsIn(tags[UID_TAG])[0] : undefined;
  const named = (Array.isArray(headers) ? headers : []).find(
    (header) => isRecord(header) && String(header.name).toLowerCase() === UID_HEADER,
  );
  const uid = tagged ?? (isRecord(named) ? String(named.value) : undefined);
  return uid !== undefined && UID.test(uid) ? uid : undefined;
}

function notificationOf(
  type: string,
  body: Readonly<Record<string, unknown>>,
  destination: readonly string[],
  replaced: Record<string, string>,
): MailEvent["notification"] | string {
  if (type === "Delivery") return { type };
  if (type === "Reject")
    return {
      type: "Bounce",
      reason: { primary: "Transient", secondary: "ContentRejected" },
      destination,
      bounced_recipients: [],
    };
  if (type === "Bounce") {
    if (!isRecord(body.bounce)) return "a Bounce without bounce";
    const { bounceType, bounceSubType, bouncedRecipients } = body.bounce;
    const primary = PRIMARY.find((known) => known === bounceType);
    if (primary === undefined) return `a Bounce of the unknown type ${JSON.stringify(bounceType)}`;
    const secondary =
      typeof bounceSubType === "string" ? kindOf("bounceSubType", bounceSubType, replaced) : UNKNOWN_KIND;
    return { type, reason: { primary, secondary }, destination, bounced_recipients: recipientsIn(bouncedRecipients) };
  }
  if (type === "Complaint") {
    if (!isRecord(body.complaint)) return "a Complaint without complaint";
    const { complaintFeedbackType, complainedRecipients } = body.complaint;
    const feedback_type =
      typeof complaintFeedbackType === "string"
        ? kindOf("complaintFeedbackType", complaintFeedbackType, replaced)
        : null;
    return { type, feedback_type, destination, complained_recipients: recipientsIn(complainedRecipients) };
  }
  return `the unknown type ${type}`;
}

const textsIn = (list: unknown): string[] =>
  Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];

const recipientsIn = (list: unknown): string[] =>
  Array.isArray(list) ? textsIn(list.map((item) => (isRecord(item) ? item.emailAddress : undefined))) : [];
