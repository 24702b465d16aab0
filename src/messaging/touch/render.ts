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

type Values = Readonly<Record<string, unknown>>;

const RENDERERS: { [C in TouchChannel]: (message: Message<C>, values: Values) => RenderedMessages[C] } = {
  push: ({ title_format, body_format, channel_id }, values) => ({
    title: compileFormat(title_format).render(values),
    body: compileFormat(body_format).render(values),
    channel_id,
  }),
  sms: ({ body_format }, values) => ({ body: compileFormat(body_format).render(values) }),
  email: ({ subject_format, template, template_parameters_fixed, template_parameters_substituted }, values) => {
    const template_parameters = structuredClone(template_parameters_fixed);
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

/** Writes a value at a path; objects and lists on the way come into being. */
function place(into: Record<string, unknown>, key: readonly (string | number)[], value: string): void {
  let at = into as Record<string | number, unknown>;
  for (const [index, step] of key.entries()) {
    if (index === key.length - 1) {
      at[step] = value;
      return;
    }
    const next = at[step];
    if (typeof next !== "object" || next === null) at[step] = typeof key[index + 1] === "number" ? [] : {};
    at = at[step] as Record<string | number, unknown>;
  }
}
