import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { book, type TemplateBook } from "./book.ts";
import { type Brand, readyBrand } from "./brand.ts";
import { faultsOf, MAX_HTML, MAX_TEXT, warningsAbout } from "./check.ts";
import { composeMail } from "./composer.ts";
import { mailFor } from "./envelope.ts";
import { errors } from "./errors.ts";
import type { Mailbox } from "./mail.ts";
import { headersOf } from "./mime.ts";
import { isMailUrl } from "./parameters.ts";
import type { Attachment, Rendered, Template } from "./template.ts";

export { book, TemplateBook, type TemplateParameters, type TemplateSlug } from "./book.ts";
export { type Brand, brandOf, readyBrand } from "./brand.ts";
export { composeMail } from "./composer.ts";
export { type Envelope, mailFor } from "./envelope.ts";
export { errors } from "./errors.ts";
export { LISTS, type List } from "./lists.ts";
export type { Mail, Mailbox } from "./mail.ts";
export { composeMime, headersOf } from "./mime.ts";
export { code, hours, line, mailbox, moment, prose, timezone, webUrl } from "./parameters.ts";
export { isLoopback, publicUrl } from "./public-url.ts";
export { type Attachment, defineTemplate, type Rendered, type Template } from "./template.ts";

/** A template with parameters that fit it. */
export interface PreparedMail extends Rendered {
  readonly template: Template;
  readonly subject: string;
  readonly lifetime: number | undefined;
  attachments(at: number): readonly Attachment[];
}

/** The template and its parsed parameters; refuses with the path of every fault, never with a value. */
export function checkParameters(slug: string, parameters: unknown, from: TemplateBook = book) {
  const template = from.get(slug);
  const parsed = template.parameters.safeParse(parameters);
  if (parsed.success) return { template, parameters: parsed.data };
  const detail = parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = detail;
  throw errors.invalid_parameters({
    message: `${slug}: ${[first?.path, first?.message].filter(Boolean).join(": ")}`,
    detail,
  });
}

/** HTML and text of a template. Parameters are checked again here: they may have waited since they were queued. */
export function renderTemplate(slug: string, parameters: unknown, brand: Brand, from: TemplateBook = book): Rendered {
  const checked = checkParameters(slug, parameters, from);
  return bounded(slug, checked.template.render(checked.parameters, brand));
}

/** Everything that a template says about one mail. */
export function prepareMail(slug: string, parameters: unknown, brand: Brand, from: TemplateBook = book): PreparedMail {
  const checked = checkParameters(slug, parameters, from);
  const { template } = checked;
  const { html, text, ready } = bounded(slug, template.render(checked.parameters, brand));
  return {
    html,
    text,
    ready,
    template,
    subject: template.subject(checked.parameters),
    lifetime: template.lifetime(checked.parameters),
    attachments: (at) => {
      const own = template.attachments(checked.parameters, at);
      return brand.logo?.attachment ? [...own, brand.logo.attachment] : own;
    },
  };
}

function bounded(slug: string, rendered: Rendered): Rendered {
  const { html, text } = rendered;
  // A character has at most three bytes for each unit of its string, so most mails need no counting.
  const tooLarge =
    (html.length * 3 > MAX_HTML && Buffer.byteLength(html) > MAX_HTML) ||
    (text.length * 3 > MAX_TEXT && Buffer.byteLength(text) > MAX_TEXT);
  if (tooLarge) throw errors.template_output_too_large({ message: `${slug} rendered more than a mail may hold.` });
  return rendered;
}

/** The parameters as operators and logs may see them. */
export function redactParameters(
  slug: string,
  parameters: Readonly<Record<string, unknown>>,
  from: TemplateBook = book,
) {
  const known = from.templates.find((template) => template.slug === slug);
  // Of a template that is gone nobody knows what was secret.
  const hidden = known?.secret ?? Object.keys(parameters);
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, hidden.includes(name) ? "[redacted]" : value]),
  );
}

export interface TemplateDescription {
  readonly slug: string;
  readonly title: string;
  readonly doc: string;
  readonly list: string | null;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly secret: readonly string[];
  readonly examples: readonly unknown[];
  readonly subject: string;
  readonly lifetime: number | null;
  readonly attachments: readonly string[];
}

export function listTemplates(from: TemplateBook = book): readonly TemplateDescription[] {
  return from.templates.map(describe);
}

export function describeTemplate(slug: string, from: TemplateBook = book): TemplateDescription {
  return describe(from.get(slug));
}

function describe(template: Template): TemplateDescription {
  const { slug, title, doc, list, secret, examples } = template;
  const example = template.parameters.parse(examples[0]);
  return {
    slug,
    title,
    doc,
    list,
    secret,
    examples,
    parameters: z.toJSONSchema(template.parameters, { io: "input" }) as Record<string, unknown>,
    subject: template.subject(example),
    lifetime: template.lifetime(example) ?? null,
    attachments: template.attachments(example, 0).map(({ filename }) => filename),
  };
}

export interface Preview extends Rendered {
  readonly subject: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly bytes: number;
  readonly warnings: readonly string[];
}

export interface PreviewRequest {
  readonly parameters: unknown;
  readonly subject?: string;
  /** Who would send it; a mailbox that cannot exist unless the caller knows better. */
  readonly from?: Mailbox;
}

/** The mail as it would be sent now, to nobody. */
export async function previewTemplate(ctx: Pick<Context, "config" | "clock">, slug: string, request: PreviewRequest) {
  const brand = await readyBrand(ctx);
  const { template, html, text, ...prepared } = prepareMail(slug, request.parameters, brand);
  const { unsubscribeUrl } = request.parameters as { unsubscribeUrl?: string };
  const subject = request.subject ?? prepared.subject;
  const date = ctx.clock.now();
  const mail = mailFor(
    template,
    { html, text },
    {
      uid: newUid("em"),
      from: request.from ?? { name: brand.name, address: "preview@mail.invalid" },
      to: "reader@mail.invalid",
      subject,
      date,
      ...(unsubscribeUrl !== undefined && isMailUrl(unsubscribeUrl)
        ? { listUnsubscribe: { url: unsubscribeUrl } }
        : {}),
      attachments: prepared.attachments(date),
    },
  );
  const raw = await composeMail(mail);
  const headers = headersOf(mail).map((line) => {
    const colon = line.indexOf(":");
    return { name: line.slice(0, colon), value: line.slice(colon + 2).replaceAll("\r\n ", " ") };
  });
  return { subject, html, text, headers, bytes: raw.length, warnings: warningsAbout(template, { html, text }, brand) };
}

export function previewOfExample(ctx: Pick<Context, "config" | "clock">, slug: string, index: number) {
  const { examples } = book.get(slug);
  if (index >= examples.length)
    throw errors.unknown_example({ message: `${slug} has ${examples.length} examples, counted from 0.` });
  return previewTemplate(ctx, slug, { parameters: examples[index] });
}

export interface TemplateVerdict {
  readonly slug: string;
  readonly examples: number;
  /** What must be mended before it is sent to anybody. */
  readonly faults: readonly string[];
  /** What works, but could be better. */
  readonly warnings: readonly string[];
}

/** Renders every example of every template, and says what is wrong with each. */
export function judgeTemplates(brand: Brand, from: TemplateBook = book): readonly TemplateVerdict[] {
  return from.templates.map((template) => {
    const { slug, examples } = template;
    const faults = faultsOf(template, brand);
    const warnings = faults.length > 0 ? [] : renderedExamples(template, brand);
    return {
      slug,
      examples: examples.length,
      faults,
      warnings: [...new Set(warnings.flatMap((rendered) => warningsAbout(template, rendered, brand)))],
    };
  });
}

const renderedExamples = (template: Template, brand: Brand): readonly Rendered[] =>
  template.examples.map((example) => template.render(template.parameters.parse(example), brand));

/** Every example of every template as files: `dailyReminder.0.html`, `dailyReminder.0.txt`. */
export function exampleFiles(brand: Brand, from: TemplateBook = book): ReadonlyMap<string, string> {
  return new Map(
    from.templates.flatMap((template) =>
      renderedExamples(template, brand).flatMap(({ html, text }, at) => {
        const subject = template.subject(template.parameters.parse(template.examples[at]));
        return [
          [`${template.slug}.${at}.html`, `${html.trimEnd()}\n`],
          [`${template.slug}.${at}.txt`, `Subject: ${subject}\n\n${text}\n`],
        ] as const;
      }),
    ),
  );
}

/** Refuses to go on with a broken template. */
export function checkTemplates(brand: Brand, from: TemplateBook = book): void {
  const faults = judgeTemplates(brand, from).flatMap((verdict) => verdict.faults);
  if (faults.length > 0) throw new Error(`These email templates are broken:\n${faults.join("\n")}`);
}
