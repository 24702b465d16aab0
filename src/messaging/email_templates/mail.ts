import { isEmailAddress } from "../contacts/service.ts";
import { errors } from "./errors.ts";
import { isMailUrl } from "./parameters.ts";
import { LONGEST_LINE } from "./safe-lines.ts";
import type { Attachment } from "./template.ts";

/** A mail as it is handed to the writer. Every value is checked; nothing is corrected silently. */
export interface Mail {
  readonly from: Mailbox;
  readonly to: string;
  readonly replyTo?: Mailbox | undefined;
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  /** The HTML with the line breaks of a mail, where it is known that every relay leaves it alone. */
  readonly ready?: string | undefined;
  /** Unix seconds. */
  readonly date: number;
  /** `left@right`, without angle brackets. */
  readonly messageId: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** For mails to a list: one click on it, without a question, ends them (RFC 8058). */
  readonly listUnsubscribe?: { readonly url: string; readonly mailto?: string | undefined } | undefined;
  readonly attachments?: readonly Attachment[] | undefined;
}

export interface Mailbox {
  readonly name?: string;
  readonly address: string;
}

const HEADER_NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,75}$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
const MESSAGE_ID = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+$/;
const LINE = /^[^\p{Cc}\p{Cs}\u2028\u2029]*$/u;
/** Headers that the writer makes itself: a second one would contradict the first. */
const OWN =
  /^(from|to|cc|bcc|sender|reply-to|subject|date|message-id|mime-version|content-.*|list-unsubscribe(-post)?|return-path|received|dkim-signature)$/i;

export function checkedAddress(address: string): string {
  if (!isEmailAddress(address)) throw refused("an address", address);
  return address;
}

export function checkedSubject(subject: string): string {
  if (subject.length < 1 || subject.length > 250 || !LINE.test(subject)) throw refused("the subject", subject);
  return subject;
}

export function checkedName(name: string): string {
  if (name.length > 200 || !LINE.test(name)) throw refused("a display name", name);
  return name;
}

export function checkedMessageId(id: string): string {
  if (id.length > 250 || !MESSAGE_ID.test(id)) throw refused("the message id", id);
  return id;
}

/** Names that were found right; they come from code, so they are few. */
const soundNames = new Set<string>();

/** `Name: value`, on one line: folding breaks signatures at some relays. */
export function checkedHeader(name: string, value: string): string {
  if (!soundNames.has(name)) {
    if (!HEADER_NAME.test(name) || OWN.test(name)) throw refused("the name of a header", name);
    if (soundNames.size < 100) soundNames.add(name);
  }
  return oneLine(name, value);
}

/** The two headers of RFC 8058; mailboxes show their own button for them. */
export function unsubscribeHeaders({ url, mailto }: NonNullable<Mail["listUnsubscribe"]>): readonly string[] {
  if (!isMailUrl(url) || url.includes(",")) throw refused("the address for unsubscribing", url);
  if (mailto !== undefined && !/^mailto:[^\s<>,]+$/.test(mailto))
    throw refused("the mailbox for unsubscribing", mailto);
  const targets = mailto === undefined ? `<${url}>` : `<${url}>, <${mailto}>`;
  return [oneLine("List-Unsubscribe", targets), "List-Unsubscribe-Post: List-Unsubscribe=One-Click"];
}

function oneLine(name: string, value: string): string {
  const line = `${name}: ${value}`;
  if (line.length > LONGEST_LINE || !HEADER_VALUE.test(value) || value.trim() === "")
    throw refused(`the header ${name}`, value);
  return line;
}

/** Says what is wrong without repeating more of it than a log can bear. */
export function refused(what: string, value: string) {
  return errors.bad_mail({ message: `${what} cannot be sent as it is: ${JSON.stringify(value.slice(0, 60))}` });
}
