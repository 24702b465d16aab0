import type { z } from "zod";
import type { Brand } from "./brand.ts";
import { inFrame, inTextFrame } from "./layout.ts";
import type { List } from "./lists.ts";
import { type Html, type Text, type Value, writer } from "./markup.ts";
import { type HtmlPen, htmlPen, type TextPen, textPen } from "./pen.ts";
import { readyWriter } from "./ready.ts";

export interface Attachment {
  readonly filename: string;
  readonly contentType: string;
  readonly content: string | Buffer;
  /** Shown inside the mail where `cid:` names it, instead of below. */
  readonly cid?: string;
}

export interface TemplatePlan<S extends z.ZodObject> {
  /** How attempts name it; never reused for another mail. */
  readonly slug: string;
  readonly title: string;
  /** When it is sent and what it asks of its reader. */
  readonly doc: string;
  readonly list: List | null;
  /** A strict object: what the template does not know is a mistake. */
  readonly parameters: S;
  /** Parameters that logs and operators never see. */
  readonly secret?: readonly (keyof z.output<S> & string)[];
  readonly subject: string | ((p: z.output<S>) => string);
  readonly preheader: Value<z.output<S>>;
  readonly reason: string;
  /** Seconds after which the mail would confuse more than help, and is not sent any more. */
  readonly lifetime?: number | ((p: z.output<S>) => number);
  /** At least one; previews, tests and the check at start render all of them. */
  readonly examples: readonly [z.input<S>, ...z.input<S>[]];
  html(pen: HtmlPen<z.output<S>>): readonly Html<z.output<S>>[];
  text(pen: TextPen<z.output<S>>): Text<z.output<S>>;
  attachments?(p: z.output<S>, at: number): readonly Attachment[];
}

export interface Rendered {
  readonly html: string;
  readonly text: string;
  /** The HTML with the line breaks of a mail, where it is known that every relay leaves it alone. */
  readonly ready?: string | undefined;
}

/** A compiled template. Methods, not properties, so that templates of different parameters fit one list. */
export interface Template<P = unknown> {
  readonly slug: string;
  readonly title: string;
  readonly doc: string;
  readonly list: List | null;
  readonly parameters: z.ZodType<P>;
  readonly secret: readonly string[];
  readonly examples: readonly unknown[];
  readonly hasAttachments: boolean;
  subject(p: P): string;
  lifetime(p: P): number | undefined;
  render(p: P, brand: Brand): Rendered;
  attachments(p: P, at: number): readonly Attachment[];
}

const SLUG = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** Declares a template and compiles it; a template that cannot be safe is refused here. */
export function defineTemplate<const Slug extends string, S extends z.ZodObject>(
  plan: TemplatePlan<S> & { readonly slug: Slug },
): Template<z.output<S>> & { readonly slug: Slug } {
  type P = z.output<S>;
  const { slug, title, doc, list, parameters, secret = [], subject, lifetime, examples } = plan;
  if (!SLUG.test(slug)) throw new TypeError(`${slug} is not the slug of a template`);
  if (list !== null && !("unsubscribeUrl" in parameters.shape))
    throw new TypeError(`${slug} goes to a list, so it needs the parameter unsubscribeUrl`);
  const unsubscribeUrl = list === null ? undefined : (p: P) => String((p as { unsubscribeUrl: string }).unsubscribeUrl);
  const frame = { title, preheader: plan.preheader, reason: plan.reason, unsubscribeUrl };
  const html = readyWriter(inFrame(plan.html(htmlPen<P>()), frame));
  const text = writer(inTextFrame(plan.text(textPen<P>()), frame));
  return {
    slug,
    title,
    doc,
    list,
    // A strict copy: an unknown parameter is a misspelt one.
    parameters: parameters.strict() as unknown as z.ZodType<P>,
    secret,
    examples,
    hasAttachments: plan.attachments !== undefined,
    subject: typeof subject === "string" ? () => subject : subject,
    lifetime: typeof lifetime === "function" ? lifetime : () => lifetime,
    render: (p, brand) => {
      const written = html(p, brand);
      return { html: written.html, text: text(p, brand).trim(), ready: written.ready };
    },
    attachments: (p, at) => plan.attachments?.(p, at) ?? [],
  };
}
