import { errors } from "./errors.ts";
import type { Mail, Mailbox } from "./mail.ts";
import type { Attachment, Rendered, Template } from "./template.ts";

export interface Envelope {
  /** The attempt's uid; with the sender's domain it is the message's id. */
  readonly uid: string;
  readonly from: Mailbox;
  readonly replyTo?: Mailbox;
  readonly to: string;
  readonly subject: string;
  /** Unix seconds. */
  readonly date: number;
  readonly listUnsubscribe?: Mail["listUnsubscribe"];
  readonly attachments?: readonly Attachment[];
}

/** A rendered template as a mail to somebody, with the headers that its kind of mail has. */
export function mailFor(template: Pick<Template, "slug" | "list">, rendered: Rendered, envelope: Envelope): Mail {
  const { uid, listUnsubscribe, ...rest } = envelope;
  const domain = envelope.from.address.slice(envelope.from.address.lastIndexOf("@") + 1);
  const { list, slug } = template;
  if (list !== null && listUnsubscribe === undefined)
    throw errors.bad_mail({ message: `${slug} goes to the list ${list} and needs an address for unsubscribing.` });
  return {
    ...rest,
    ...rendered,
    messageId: `${uid}@${domain}`,
    headers: {
      "X-Carillon-Email-Uid": uid,
      // No vacation responder should answer.
      "Auto-Submitted": "auto-generated",
      ...(list === null ? {} : { "List-Id": `<${list}.${domain}>` }),
    },
    // A mail that people cannot be without has no button for leaving.
    ...(list === null ? {} : { listUnsubscribe }),
  };
}
