import { errors } from "./errors.ts";
import type { Mail, Mailbox } from "./mail.ts";
import type { Attachment, Rendered, Template } from "./template.ts";

export interface Envelope {
  /** The attempt's uid; with the sender's domain it is the message's id. */
  readonly uid: string;
  readonly from: Mailbox;
  readonly replyTo?: Mailbox | undefined;
  readonly to: string;
  readonly subject: string;
  /** Unix seconds. */
  readonly date: number;
  readonly listUnsubscribe?: Mail["listUnsubscribe"];
  readonly attachments?: readonly Attachment[] | undefined;
}

/** A rendered template as a mail to somebody, with the headers that its kind of mail has. */
export function mailFor(template: Pick<Template, "slug" | "list">, rendered: Rendered, envelope: Envelope): Mail {
  const { uid, from, to, replyTo, subject, date, listUnsubscribe, attachments } = envelope;
  const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
  const { list, slug } = template;
  if (list !== null && listUnsubscribe === undefined)
    throw errors.bad_mail({ message: `${slug} goes to the list ${list} and needs an address for unsubscribing.` });
  return {
    from,
    to,
    replyTo,
    subject,
    html: rendered.html,
    text: rendered.text,
    ready: rendered.ready,
    date,
    messageId: `${uid}@${domain}`,
    // No vacation responder should answer.
    headers:
      list === null
        ? { "X-Carillon-Email-Uid": uid, "Auto-Submitted": "auto-generated" }
        : { "X-Carillon-Email-Uid": uid, "Auto-Submitted": "auto-generated", "List-Id": `<${list}.${domain}>` },
    // A mail that people cannot be without has no button for leaving.
    listUnsubscribe: list === null ? undefined : listUnsubscribe,
    attachments,
  };
}
