import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { bareAddress, type EmailMessage } from "../../providers/email.ts";
import { errorText } from "../../providers/failure.ts";
import { emailSettings } from "../../providers/settings.ts";
import { isHeldBack, type SuppressedAmong } from "../contacts/service.ts";
import {
  type Brand,
  brandOf,
  composeMail,
  type Envelope,
  headersOf,
  type Mailbox,
  mailFor,
  prepareMail,
  readyBrand,
  type Template,
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
  /** Other mails would share it. */
  readonly backoff?: true;
}
export type Written = { readonly ok: true; readonly message: EmailMessage } | Unwritten;

/** While nothing is configured, mails go to the sandbox, from here. */
const SANDBOX_SENDER = "Carillon <carillon@mail.invalid>";

/** What all mails of an installation share, worked out once. */
interface House {
  readonly brand: Brand;
  readonly sender: string;
  readonly from: Mailbox;
  readonly replyTo: Mailbox | undefined;
  readonly mailto: string | undefined;
  /** What links for leaving begin with. */
  readonly leaving: string;
  readonly isReal: boolean;
}

const houses = new WeakMap<Config, House>();

/** Whatever the token, the address before it is the same. */
function leavingBase(config: Config): string {
  const link = unsubscribeUrl({ config }, { email: "", list: "", emailUid: "", issuedAt: 0 });
  return link.slice(0, link.lastIndexOf("/") + 1);
}

function houseOf(config: Config): House {
  const known = houses.get(config);
  if (known) return known;
  const sender = config.get(settings.from) ?? SANDBOX_SENDER;
  const [replyTo, mailto] = [config.get(settings.replyTo), config.get(settings.unsubscribeMailto)];
  const house: House = {
    brand: brandOf(config),
    sender,
    from: mailboxOf(sender),
    replyTo: replyTo === undefined ? undefined : mailboxOf(replyTo),
    mailto,
    leaving: leavingBase(config),
    isReal: config.get(emailSettings.provider).length > 0,
  };
  houses.set(config, house);
  return house;
}

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
  const house = houseOf(ctx.config);
  let prepared: ReturnType<typeof prepareMail>;
  try {
    const brand = readyBrand(ctx);
    // What waits for nothing costs nothing: most installations have no logo that must be fetched.
    prepared = prepareMail(
      attempt.template,
      attempt.template_parameters,
      brand instanceof Promise ? await brand : brand,
    );
  } catch (error) {
    return refusalOf(error);
  }
  const { template, lifetime } = prepared;
  if (isHeldBack(held, template.list)) return unwritten("Suppressed", "Suppressed", held?.reason ?? null);
  const now = ctx.clock.now();
  if (lifetime !== undefined && now - attempt.initially_queued_at > lifetime)
    return unwritten("Expired", "Expired", `older than ${lifetime} s`);
  try {
    const mail = mailFor(template, prepared, envelopeOf(ctx, house, attempt, template, now, prepared.attachments(now)));
    const { uid, email: to } = attempt;
    const composed = composeMail(mail);
    const mime = composed instanceof Promise ? await composed : composed;
    return { ok: true, message: { from: house.sender, to, mime, tags: { template: attempt.template, uid } } };
  } catch (error) {
    if (templateErrors.bad_mail.matches(error)) return refusalOf(error);
    return unwritten("TemplateInternalError", "InternalError", errorText(error));
  }
}

/** Raises `bad_mail` for a mail whose headers could not be written, so that it need not be queued to learn that. */
export function checkEnvelope(config: Config, attempt: Attempt, template: Template): void {
  const house = houseOf(config);
  // Any link for leaving fits where another does: sealing the real one would cost more than all other checks.
  const parameters = { ...attempt.template_parameters, unsubscribeUrl: house.leaving };
  const date = attempt.initially_queued_at;
  const envelope = envelopeOf({ config }, house, { ...attempt, template_parameters: parameters }, template, date);
  headersOf(mailFor(template, { html: "", text: "" }, envelope));
}

function envelopeOf(
  ctx: Pick<Context, "config">,
  house: House,
  attempt: Attempt,
  { list, slug }: Template,
  date: number,
  attachments?: Envelope["attachments"],
): Envelope {
  const { uid, email: to, subject } = attempt;
  const { from, replyTo, mailto } = house;
  if (list === null) return { uid, from, replyTo, to, subject, date, listUnsubscribe: undefined, attachments };
  // Laws want it below mails to a list; those that only reach the sandbox bother nobody.
  if (house.isReal && house.brand.address === undefined)
    throw templateErrors.bad_mail({
      message: `${slug} goes to the list ${list} and needs a postal address: set CARILLON_EMAIL_POSTAL_ADDRESS.`,
    });
  const { unsubscribeUrl: held } = attempt.template_parameters;
  // The link inside the mail serves as the header too; a caller's own page takes no wishes from mailboxes.
  const url =
    typeof held === "string" && held.startsWith(house.leaving)
      ? held
      : unsubscribeUrl(ctx, { email: to, list, emailUid: uid, issuedAt: attempt.initially_queued_at });
  return { uid, from, replyTo, to, subject, date, listUnsubscribe: { url, mailto }, attachments };
}

function refusalOf(error: unknown): Unwritten {
  const text = errorText(error);
  if (templateErrors.unknown_template.matches(error)) return unwritten("TemplateNotFound", "404", text);
  if (templateErrors.invalid_parameters.matches(error)) return unwritten("TemplateUnprocessable", "422", text);
  if (templateErrors.bad_mail.matches(error)) return unwritten("TemplateClientError", "400", text);
  if (templateErrors.template_output_too_large.matches(error))
    return unwritten("TemplateInternalError", "InternalError", text);
  if (templateErrors.template_asset_unreachable.matches(error))
    return { ...unwritten("TemplateNetworkError", "NetworkError", text, true), backoff: true };
  if (templateErrors.template_too_slow.matches(error))
    return { ...unwritten("TemplateServerError", "503", text, true), backoff: true };
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
