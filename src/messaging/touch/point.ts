import { createHash } from "node:crypto";
import { z } from "zod";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { SLUG, type TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import { BadFormat, compileFormat } from "./format.ts";

export const STRATEGIES = ["random_with_replacement", "fixed", "ordered_resettable"] as const;
export type SelectionStrategy = (typeof STRATEGIES)[number];

const Priority = z.int().min(-1_000_000).max(1_000_000);
const Parameters = z.array(z.string().min(1).max(255)).max(50).default([]);
const uidOf = (prefix: string) => z.string().regex(new RegExp(`^crl_${prefix}_[A-Za-z0-9_-]{1,128}$`));
const Format = (longest: number) => z.string().min(1).max(longest);

export const SmsMessage = z.strictObject({
  priority: Priority,
  uid: uidOf("tpsms"),
  body_format: Format(1_600),
  body_parameters: Parameters,
});
export const PushMessage = z.strictObject({
  priority: Priority,
  uid: uidOf("tppush"),
  title_format: Format(255),
  title_parameters: Parameters,
  body_format: Format(2_000),
  body_parameters: Parameters,
  channel_id: z.string().min(1).max(100),
});
export const EmailMessage = z.strictObject({
  priority: Priority,
  uid: uidOf("tpem"),
  subject_format: Format(250),
  subject_parameters: Parameters,
  template: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/),
  template_parameters_fixed: z.record(z.string(), z.unknown()).default({}),
  template_parameters_substituted: z
    .array(
      z.strictObject({
        key: z
          .array(z.union([z.string().min(1).max(100), z.int().min(0).max(1_000)]))
          .min(1)
          .max(10),
        format: Format(10_000),
        parameters: Parameters,
      }),
    )
    .max(50)
    .default([]),
});

export const Messages = z.strictObject({
  sms: z.array(SmsMessage).max(500).default([]),
  push: z.array(PushMessage).max(500).default([]),
  email: z.array(EmailMessage).max(500).default([]),
});
export type Messages = z.output<typeof Messages>;
export type Message<Channel extends TouchChannel = TouchChannel> = Messages[Channel][number];

export const EventSlug = z
  .string()
  .min(2)
  .max(255)
  .regex(SLUG, "has letters and underscores, and begins and ends with a letter");

export interface TouchPoint {
  readonly id: number;
  readonly uid: string;
  readonly event_slug: string;
  readonly event_schema: Readonly<Record<string, unknown>>;
  readonly selection_strategy: SelectionStrategy;
  readonly messages: Messages;
  readonly created_at: number;
}

/** Messages stand in the order of their priority; equal ones keep the order they were given in. */
export function sorted(messages: Messages): Messages {
  const byPriority = <T extends { readonly priority: number }>(list: readonly T[]) =>
    [...list].sort((one, other) => one.priority - other.priority);
  return { sms: byPriority(messages.sms), push: byPriority(messages.push), email: byPriority(messages.email) };
}

/** Tells whether messages changed since somebody read them. */
export function messagesEtag(messages: Messages): string {
  return createHash("sha512").update(canonicalJson(messages)).digest("hex");
}

interface Property {
  readonly type?: unknown;
  readonly example?: unknown;
  readonly properties?: Readonly<Record<string, Property>>;
}

const validators = new WeakMap<object, z.ZodType>();

/** Checks the parameters of an event. Compiled once for each schema that was read. */
export function validatorOf(schema: Readonly<Record<string, unknown>>): z.ZodType {
  const known = validators.get(schema);
  if (known) return known;
  const made = z.fromJSONSchema(schema as never);
  validators.set(schema, made);
  return made;
}

/** The fault of parameters, in words without their values; nothing when they fit. */
export function faultOfParameters(schema: Readonly<Record<string, unknown>>, parameters: unknown): string | undefined {
  const parsed = validatorOf(schema).safeParse(parameters);
  if (parsed.success) return undefined;
  const [issue] = parsed.error.issues;
  return [issue?.path.join("."), issue?.message].filter(Boolean).join(": ");
}

/** Refuses a schema that people could not fill in: it describes an object, and every property has a type and an example. */
export function checkSchema(schema: Readonly<Record<string, unknown>>): void {
  const refuse = (reason: string): never => {
    throw errors.schema_fails_validation({ message: `The schema of the event: ${reason}.` });
  };
  if (schema.type !== "object") refuse("its type is not object");
  const walk = (properties: Property["properties"], path: string): void => {
    for (const [name, property] of Object.entries(properties ?? {})) {
      const at = path + name;
      if (typeof property !== "object" || property === null) refuse(`${at} is no schema`);
      if (property.type === undefined) refuse(`${at} has no type`);
      if (property.type === "object" && property.properties) walk(property.properties, `${at}.`);
      else if (property.example === undefined) refuse(`${at} has no example`);
    }
  };
  walk(schema.properties as Property["properties"], "");
  try {
    validatorOf(schema);
  } catch (error) {
    refuse((error as Error).message);
  }
  const fault = faultOfParameters(schema, exampleOf(schema));
  if (fault) refuse(`its examples do not fit it: ${fault}`);
}

/** Parameters made of the examples of a schema. */
export function exampleOf(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const examples: Record<string, unknown> = {};
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, Property>))
    examples[name] =
      property.example ?? (property.properties ? exampleOf(property as Record<string, unknown>) : undefined);
  return examples;
}

function hasParameter(schema: Readonly<Record<string, unknown>>, path: string): boolean {
  let at: Property | undefined = schema as Property;
  for (const step of path.split(".")) {
    const within: Property | undefined = at?.properties?.[step];
    if (!within) return false;
    at = within;
  }
  return true;
}

/** Every format of a message with the parameters that it declares. */
function* formatsOf(messages: Messages): Generator<{ uid: string; format: string; declared: readonly string[] }> {
  for (const { uid, body_format, body_parameters } of messages.sms)
    yield { uid, format: body_format, declared: body_parameters };
  for (const { uid, title_format, title_parameters, body_format, body_parameters } of messages.push) {
    yield { uid, format: title_format, declared: title_parameters };
    yield { uid, format: body_format, declared: body_parameters };
  }
  for (const { uid, subject_format, subject_parameters, template_parameters_substituted } of messages.email) {
    yield { uid, format: subject_format, declared: subject_parameters };
    for (const { format, parameters } of template_parameters_substituted) yield { uid, format, declared: parameters };
  }
}

/** Refuses messages that could not be rendered for some event of the schema. */
export function checkMessages(messages: Messages, schema: Readonly<Record<string, unknown>>): void {
  const refuse = (uid: string, reason: string): never => {
    throw errors.messages_dont_match_schema({ message: `The message ${uid}: ${reason}.` });
  };
  const uids = [...messages.sms, ...messages.push, ...messages.email].map(({ uid }) => uid);
  for (const [at, uid] of uids.entries()) if (uids.indexOf(uid) !== at) refuse(uid, "another one has its uid");
  for (const { uid, format, declared } of formatsOf(messages)) {
    const used = parametersOf(uid, format, refuse);
    for (const name of used) if (!declared.includes(name)) refuse(uid, `uses {${name}} without declaring it`);
    for (const name of declared) {
      if (!used.includes(name)) refuse(uid, `declares ${name} without using it`);
      if (!hasParameter(schema, name)) refuse(uid, `uses ${name}, which the schema does not have`);
    }
  }
}

function parametersOf(uid: string, format: string, refuse: (uid: string, reason: string) => never): readonly string[] {
  try {
    return compileFormat(format).parameters;
  } catch (error) {
    if (error instanceof BadFormat) return refuse(uid, error.message);
    throw error;
  }
}
