import { z } from "zod";
import type { TouchChannel } from "./entries.ts";
import { compileFormat } from "./format.ts";
import type { Message } from "./point.ts";

/** What a person is told on one channel. */
export interface RenderedMessages {
  readonly push: { readonly title: string; readonly body: string; readonly channel_id: string };
  readonly sms: { readonly body: string };
  readonly email: {
    readonly subject: string;
    readonly template: string;
    readonly template_parameters: Record<string, unknown>;
  };
}

/** The same as an answer: the fields of whichever channel it is. */
export const Rendered = z.object({
  title: z.string().optional(),
  body: z.string().optional(),
  channel_id: z.string().optional(),
  subject: z.string().optional(),
  template: z.string().optional(),
  template_parameters: z.record(z.string(), z.unknown()).optional(),
});

type Values = Readonly<Record<string, unknown>>;

const RENDERERS: { [C in TouchChannel]: (message: Message<C>, values: Values) => RenderedMessages[C] } = {
  push: ({ title_format, body_format, channel_id }, values) => ({
    title: compileFormat(title_format).render(values),
    body: compileFormat(body_format).render(values),
    channel_id,
  }),
  sms: ({ body_format }, values) => ({ body: compileFormat(body_format).render(values) }),
  email: ({ subject_format, template, template_parameters_fixed, template_parameters_substituted }, values) => {
    const template_parameters = copyOf(template_parameters_fixed) as Record<string, unknown>;
    for (const { key, format } of template_parameters_substituted)
      place(template_parameters, key, compileFormat(format).render(values));
    return { subject: compileFormat(subject_format).render(values), template, template_parameters };
  },
};

export function renderMessage<C extends TouchChannel>(
  channel: C,
  message: Message<C>,
  values: Values,
): RenderedMessages[C] {
  return RENDERERS[channel](message, values);
}

/** Of what JSON can hold; the general way is ten times as slow. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, held] of Object.entries(value)) copy[name] = copyOf(held);
  return copy;
}

/** Writes a value at a path; objects and lists on the way come into being. Only own places count, whatever they are called. */
function place(into: object, key: readonly (string | number)[], value: string): void {
  let at = into;
  for (const [index, step] of key.entries()) {
    if (index === key.length - 1) {
      put(at, step, value);
      return;
    }
    const next: unknown = Object.getOwnPropertyDescriptor(at, step)?.value;
    const inner = typeof next === "object" && next !== null ? next : typeof key[index + 1] === "number" ? [] : {};
    if (inner !== next) put(at, step, inner);
    at = inner;
  }
}

function put(into: object, step: string | number, value: unknown): void {
  Object.defineProperty(into, step, { value, writable: true, enumerable: true, configurable: true });
}
