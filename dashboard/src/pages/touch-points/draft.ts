import type { Answer } from "../../api/index.ts";

export type Point = Answer<"get", "/api/1/admin/touch_points/{uid}">;
export type Messages = Point["messages"];
export type Strategy = Point["selection_strategy"];
export type Parameters = Readonly<Record<string, unknown>>;

export const STRATEGIES: Readonly<Record<Strategy, { readonly label: string; readonly doc: string }>> = {
  random_with_replacement: { label: "any, by chance", doc: "Any message, by chance. Nothing is remembered." },
  fixed: {
    label: "each once, in order",
    doc: "Each message once, the lowest priority first and by chance within it; then from the beginning.",
  },
  ordered_resettable: {
    label: "one of each priority in turn",
    doc: "One message of each priority in turn, upwards; within it what was never said, then what was said longest ago. `ss_reset` begins at the lowest.",
  },
};

export interface Draft {
  readonly slug: string;
  /** As text, so that it may be wrong for a while. */
  readonly schema: string;
  readonly strategy: Strategy;
  readonly messages: Messages;
}

export const EMPTY: Draft = {
  slug: "",
  schema: JSON.stringify(
    { type: "object", properties: { name: { type: "string", example: "Ada" } }, required: ["name"] },
    undefined,
    2,
  ),
  strategy: "random_with_replacement",
  messages: { sms: [], push: [], email: [] },
};

export function draftOf(point: Point): Draft {
  return {
    slug: point.event_slug,
    schema: JSON.stringify(point.event_schema, undefined, 2),
    strategy: point.selection_strategy,
    messages: point.messages,
  };
}

const PLACE = /\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}/g;

/** The parameters that a format names, each once. The server refuses a message that declares others. */
export function parametersIn(format: string): string[] {
  return [...new Set([...format.matchAll(PLACE)].flatMap(([, name]) => name ?? []))];
}

/** Messages that declare exactly what they use. */
export function declared(messages: Messages): Messages {
  return {
    sms: messages.sms.map((message) => ({ ...message, body_parameters: parametersIn(message.body_format) })),
    push: messages.push.map((message) => ({
      ...message,
      title_parameters: parametersIn(message.title_format),
      body_parameters: parametersIn(message.body_format),
    })),
    email: messages.email.map((message) => ({
      ...message,
      subject_parameters: parametersIn(message.subject_format),
      template_parameters_substituted: message.template_parameters_substituted.map((part) => ({
        ...part,
        parameters: parametersIn(part.format),
      })),
    })),
  };
}

interface Property {
  readonly example?: unknown;
  readonly properties?: Readonly<Record<string, Property>>;
}

/** Parameters made of the examples of a schema, to preview and send with. */
export function exampleOf(schema: Property | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema?.properties ?? {}).map(([name, property]) => [
      name,
      property?.example ?? exampleOf(property ?? undefined),
    ]),
  );
}

/** A uid for a message that nobody has yet; 22 signs, as all of them. */
export function newMessageUid(prefix: "tpsms" | "tppush" | "tpem"): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const text = btoa(String.fromCharCode(...bytes));
  return `crl_${prefix}_${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}
