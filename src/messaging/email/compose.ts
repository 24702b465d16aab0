import type { Context } from "../../jobs/context.ts";
import { bareAddress, type EmailMessage } from "../../providers/email.ts";
import { errorText } from "../../providers/failure.ts";
import { isHeldBack, type SuppressedAmong } from "../contacts/service.ts";
import {
  brandOf,
  composeMail,
  type Mailbox,
  mailFor,
  prepareMail,
  errors as templateErrors,
} from "../email_templates/service.ts";
import type { Attempt } from "./entries.ts";
import { settings } from "./settings.ts";
import { unsubscribeUrl } from "./unsubscribe-token.ts";

/** A mail that could not even be written. */
export interface Unwritten {
  readonly ok: false;
  readonly identifier: string;
  /** What the breakdown of failures calls it, after `template:`. */
  readonly word: string;
  readonly retryable: boolean;
  readonly extra: string | null;
}
export type Written = { readonly ok: true; readonly message: EmailMessage } | Unwritten;

/** While nothing is configured, mails go to the sandbox, from here. */
const SANDBOX_SENDER = "Carillon <carillon@mail.invalid>";

const unwritten = (identifier: string, word: string, extra: string | null, retryable = false): Unwritten => ({
  ok: false,
  identifier,
  word,
  retryable,
  extra,
});

/** The bytes of a mail, or why there are none: suppressed, too late, or a template that does not take its parameters. */
export async function writeMail(
  ctx: Pick<Context, "config" | "clock">,
  attempt: Attempt,
  suppressed: SuppressedAmong["emails"],
): Promise<Written> {
  const held = suppressed.get(attempt.email);
  if (isHeldBack(held, null)) return unwritten("Suppressed", "Suppressed", held?.reason ?? null);
  let prepared: ReturnType<typeof prepareMail>;
  try {
    prepared = prepareMail(attempt.template, attempt.template_parameters, brandOf(ctx.config));
  } catch (error) {
    return refusalOf(error);
  }
  const { template, lifetime, html, text } = prepared;
  if (isHeldBack(held, template.list)) return unwritten("Suppressed", "Suppressed", held?.reason ?? null);
  const now = ctx.clock.now();
  if (lifetime !== undefined && now - attempt.initially_queued_at > lifetime)
    return unwritten("Expired", "Expired", `older than ${lifetime} s`);
  const from = mailboxOf(ctx.config.get(settings.from) ?? SANDBOX_SENDER);
  const replyTo = ctx.config.get(settings.replyTo);
  const { uid, email } = attempt;
  try {
    const mail = mailFor(
      template,
      { html, text },
      {
        uid,
        from,
        ...(replyTo === undefined ? {} : { replyTo: mailboxOf(replyTo) }),
        to: email,
        subject: attempt.subject,
        date: now,
        ...(template.list === null ? {} : { listUnsubscribe: leaving(ctx, attempt, template.list) }),
        attachments: prepared.attachments(now),
      },
    );
    const mime = await composeMail(mail);
    const sender = ctx.config.get(settings.from) ?? SANDBOX_SENDER;
    return { ok: true, message: { from: sender, to: email, mime, tags: { template: attempt.template, uid } } };
  } catch (error) {
    if (templateErrors.bad_mail.matches(error)) return refusalOf(error);
    return unwritten("TemplateInternalError", "InternalError", errorText(error));
  }
}

function leaving(ctx: Pick<Context, "config">, { uid, email, initially_queued_at }: Attempt, list: string) {
  const url = unsubscribeUrl(ctx, { email, list, emailUid: uid, issuedAt: initially_queued_at });
  const mailto = ctx.config.get(settings.unsubscribeMailto);
  return mailto === undefined ? { url } : { url, mailto };
}

function refusalOf(error: unknown): Unwritten {
  const text = errorText(error);
  if (templateErrors.unknown_template.matches(error)) return unwritten("TemplateNotFound", "404", text);
  if (templateErrors.invalid_parameters.matches(error)) return unwritten("TemplateUnprocessable", "422", text);
  if (templateErrors.bad_mail.matches(error)) return unwritten("TemplateClientError", "400", text);
  if (templateErrors.template_output_too_large.matches(error))
    return unwritten("TemplateInternalError", "InternalError", text);
  // The template itself broke: its next version may not.
  return unwritten("TemplateServerError", "500", text, true);
}

export function mailboxOf(sender: string): Mailbox {
  const address = bareAddress(sender);
  const name = sender.includes("<")
    ? sender
        .slice(0, sender.lastIndexOf("<"))
        .trim()
        .replace(/^"(.*)"$/, "$1")
    : "";
  return name === "" ? { address } : { name, address };
}
