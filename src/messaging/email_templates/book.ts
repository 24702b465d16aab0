import { announcement } from "./announcement.ts";
import { dailyReminder } from "./daily-reminder.ts";
import { errors } from "./errors.ts";
import { eventRegistration } from "./event-registration.ts";
import { passwordChanged } from "./password-changed.ts";
import { resetPassword } from "./reset-password.ts";
import { resetPasswordLink } from "./reset-password-link.ts";
import { sample } from "./sample.ts";
import type { Template } from "./template.ts";
import { verifyEmailCode } from "./verify-email-code.ts";
import { verifyEmailLink } from "./verify-email-link.ts";
import { welcome } from "./welcome.ts";

/** Templates by their slug; two with the same slug stop the start. */
export class TemplateBook {
  readonly templates: readonly Template[];
  readonly #bySlug = new Map<string, Template>();

  constructor(templates: readonly Template[]) {
    this.templates = templates;
    for (const template of templates) {
      if (this.#bySlug.has(template.slug)) throw new TypeError(`two email templates have the slug ${template.slug}`);
      this.#bySlug.set(template.slug, template);
    }
  }

  get(slug: string): Template {
    const found = this.#bySlug.get(slug);
    if (!found)
      throw errors.unknown_template({ message: `There is no email template ${JSON.stringify(slug.slice(0, 64))}.` });
    return found;
  }
}

const builtIn = [
  verifyEmailCode,
  resetPassword,
  verifyEmailLink,
  resetPasswordLink,
  passwordChanged,
  welcome,
  dailyReminder,
  announcement,
  eventRegistration,
  sample,
] as const;

type BuiltIn = (typeof builtIn)[number];
export type TemplateSlug = BuiltIn["slug"];
/** What a template takes: `TemplateParameters<"dailyReminder">`. */
export type TemplateParameters<Slug extends TemplateSlug> =
  Extract<BuiltIn, { slug: Slug }> extends Template<infer P> ? P : never;

/** The templates that Carillon brings along. */
export const book = new TemplateBook(builtIn as readonly Template[]);
