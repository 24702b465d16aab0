import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { kernelErrors } from "../errors.ts";
import { canonicalJson } from "./canonical.ts";

/** How a value looks in Redis. `decode` throws `undecodable` with a reason when the bytes have another shape. */
export interface Codec<T> {
  /** What the reference prints as the value's shape. */
  readonly shape: string;
  encode(value: T): string | Buffer;
  decode(raw: Buffer): T;
  /** The same from text, where the bytes came as text anyway: as `decode(Buffer.from(written))`, with less work. */
  read?(written: string): T;
}

/**
 * Adds the way from text to a codec. Copies by spreading do not have it: whoever changes `decode` would else leave a second
 * way in that checks less.
 */
export function readable<T, C extends Codec<T>>(codec: C, read: (written: string) => T): C {
  return Object.defineProperty(codec, "read", { value: read });
}

export type Decoded<C> = C extends Codec<infer T> ? T : never;

export function undecodable(shape: string, reason: string): Error {
  return kernelErrors.undecodable({ message: `expected ${shape}: ${reason}` });
}

export const text: Codec<string> = readable(
  {
    shape: "text",
    encode: (value) => value,
    decode(raw) {
      if (!isUtf8(raw)) throw undecodable("text", "the bytes are not UTF-8");
      return raw.toString("utf8");
    },
  },
  (written) => written,
);

export const binary: Codec<Buffer> = { shape: "bytes", encode: (value) => value, decode: (raw) => raw };

export const integer: Codec<number> = readable(
  { shape: "integer", encode: (value) => String(value), decode: (raw) => readInteger(raw.toString("latin1")) },
  readInteger,
);

function readInteger(written: string): number {
  const value = Number(written);
  if (!/^-?\d{1,16}$/.test(written) || !Number.isSafeInteger(value))
    throw undecodable("an integer", `got ${preview(written)}`);
  return value;
}

/** An unsigned 64-bit integer kept as decimal text, because it does not fit a JavaScript number. */
export const unsigned64: Codec<string> = {
  shape: "unsigned 64-bit integer in decimal",
  encode: (value) => value,
  decode(raw) {
    const written = raw.toString("latin1");
    if (!/^\d{1,20}$/.test(written) || BigInt(written) > 0xffff_ffff_ffff_ffffn)
      throw undecodable("an unsigned 64-bit integer", `got ${preview(written)}`);
    return written;
  },
};

/** As Lua, Redis and JavaScript write numbers; no hexadecimal, no words. */
const DECIMAL = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** A decimal number, such as a unix time with fractions. */
export const decimal: Codec<number> = readable(
  { shape: "decimal number", encode: (value) => String(value), decode: (raw) => readDecimal(raw.toString("latin1")) },
  readDecimal,
);

function readDecimal(raw: string): number {
  const written = raw.trim();
  const value = Number(written);
  if (!DECIMAL.test(written) || !Number.isFinite(value))
    throw undecodable("a decimal number", `got ${preview(written)}`);
  return value;
}

/** Exactly this text and nothing else, such as the `1` of a basic lock. */
export function literal<const Value extends string>(value: Value): Codec<Value> {
  const read = (written: string): Value => {
    if (written !== value) throw undecodable(`the text ${value}`, `got ${preview(written)}`);
    return value;
  };
  const codec: Codec<Value> = {
    shape: `the text \`${value}\``,
    encode: () => value,
    decode: (raw) => read(raw.toString("utf8")),
  };
  return readable(codec, read);
}

/** Text of a given form. */
export function matching(form: RegExp, shape: string): Codec<string> {
  const read = (written: string): string => {
    if (!form.test(written)) throw undecodable(shape, `got ${preview(written)}`);
    return written;
  };
  return readable({ shape, encode: (value) => value, decode: (raw) => read(raw.toString("utf8")) }, read);
}

export interface JsonCodec<T> extends Codec<T> {
  readonly schema: z.ZodType<T>;
}

/** JSON checked by a schema. `canonical` also demands the canonical form, as members of sets need it. */
export function json<T>(schema: z.ZodType<T>, options: JsonOptions<T> = {}): JsonCodec<T> {
  const shape = options.shape ?? `${options.canonical ? "canonical " : ""}JSON${fieldsOf(schema)}`;
  const read = (written: string): T => {
    let value: unknown;
    try {
      value = JSON.parse(written);
    } catch {
      throw undecodable(shape, `not JSON: ${preview(written)}`);
    }
    if (options.isPlain?.(value) && isHarmless(written)) return value;
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw undecodable(shape, z.prettifyError(parsed.error).replaceAll("\n", " "));
    if (options.canonical && canonicalJson(value) !== written)
      throw undecodable(shape, "keys are not sorted or whitespace is left");
    return parsed.data;
  };
  const codec: JsonCodec<T> = {
    shape,
    schema,
    encode: options.canonical ? canonicalJson : (value) => JSON.stringify(value),
    decode: (raw) => read(raw.toString("utf8")),
  };
  return readable(codec, read);
}

export interface JsonOptions<T> {
  readonly canonical?: boolean;
  readonly shape?: string;
  /**
   * Recognises by hand what nearly all values look like, where a schema that copies them costs more than all the rest. It
   * may say no to what the schema takes, never yes to what the schema refuses or changes.
   */
  isPlain?(value: unknown): value is T;
}

/** A schema leaves out a member of this name, which means something else elsewhere. */
export function isHarmless(json: string): boolean {
  return !json.includes("__proto__");
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** ` {name, uid?}` for the reference; nothing where the schema is not an object. */
function fieldsOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodArray) return " list";
  if (!(schema instanceof z.ZodObject)) return "";
  const names = Object.entries(schema.shape as Record<string, z.ZodType>).map(([name, field]) =>
    field.safeParse(undefined).success ? `${name}?` : name,
  );
  return ` {${names.join(", ")}}`;
}

/** The fields of a hash with known names; a field whose codec is wrapped in `optional` may be absent. */
export type FieldCodecs = Readonly<Record<string, Codec<never> | OptionalField<never>>>;

export interface OptionalField<T> {
  readonly optional: Codec<T>;
}

export function optional<T>(codec: Codec<T>): OptionalField<T> {
  return { optional: codec };
}

type FieldValue<F> = F extends OptionalField<infer T> ? T | undefined : F extends Codec<infer T> ? T : never;
type OptionalNames<F> = { [K in keyof F]: F[K] extends OptionalField<unknown> ? K : never }[keyof F];
export type HashValue<F> = { [K in Exclude<keyof F, OptionalNames<F>>]: FieldValue<F[K]> } & {
  [K in OptionalNames<F>]?: FieldValue<F[K]>;
};

/** How a whole hash looks. Encodes to a flat list of field and value, the order that HSET takes. */
export interface HashCodec<T> {
  readonly shape: string;
  /** Any part of the fields decodes by itself, so a sample of a large hash can be judged. */
  readonly partial?: boolean;
  encode(value: T): (string | Buffer)[];
  decode(raw: Readonly<Record<string, Buffer>>): T;
  /** The same from texts, as scripts answer them; see `readable`. */
  read?(texts: Readonly<Record<string, string>>): T;
}

/** As `readable`, for hashes. */
export function readableHash<T, C extends HashCodec<T>>(
  codec: C,
  read: (texts: Readonly<Record<string, string>>) => T,
): C {
  return Object.defineProperty(codec, "read", { value: read });
}

// biome-ignore lint/suspicious/noExplicitAny: a record of codecs of any value type; HashValue recovers each of them
export function fields<const F extends Record<string, Codec<any> | OptionalField<any>>>(
  codecs: F,
): HashCodec<HashValue<F>> & { readonly fields: F } {
  const entries = Object.entries(codecs).map(([name, codec]) =>
    "optional" in codec ? { name, codec: codec.optional, optional: true } : { name, codec, optional: false },
  );
  const known = new Set(Object.keys(codecs));
  const gather = <Raw>(raw: Readonly<Record<string, Raw>>, decode: (codec: Codec<unknown>, value: Raw) => unknown) => {
    const result: Record<string, unknown> = {};
    let found = 0;
    for (const { name, codec, optional: mayBeAbsent } of entries) {
      const value = raw[name];
      if (value !== undefined) {
        found += 1;
        result[name] = decode(codec, value);
      } else if (!mayBeAbsent) throw undecodable("a hash", `field ${name} is missing`);
    }
    const names = Object.keys(raw);
    if (names.length > found) {
      const unknown = names.filter((name) => !known.has(name));
      if (unknown.length > 0) throw undecodable("a hash", `unknown field ${unknown.join(", ")}`);
    }
    return result as HashValue<F>;
  };
  const codec: HashCodec<HashValue<F>> & { readonly fields: F } = {
    fields: codecs,
    shape: entries.map((entry) => `\`${entry.name}\`${entry.optional ? "?" : ""}: ${entry.codec.shape}`).join(", "),
    encode(value) {
      const given: Record<string, unknown> = value;
      const flat: (string | Buffer)[] = [];
      for (const { name, codec: one } of entries)
        if (given[name] !== undefined) flat.push(name, one.encode(given[name] as never));
      return flat;
    },
    decode: (raw) => gather(raw, (one, value) => one.decode(value)),
  };
  return readableHash(codec, (texts) => gather(texts, readText));
}

function readText(codec: Codec<unknown>, written: string): unknown {
  return codec.read ? codec.read(written) : codec.decode(Buffer.from(written));
}

/** A hash whose field names are data: event to count, digest to time. */
export function mapOf<T>(
  value: Codec<T>,
  options: { field?: Codec<string>; shape?: string } = {},
): HashCodec<Record<string, T>> {
  const field = options.field ?? text;
  return {
    shape: options.shape ?? `${field.shape} → ${value.shape}`,
    partial: true,
    encode: (map) => Object.entries(map).flatMap(([name, member]) => [field.encode(name), value.encode(member)]),
    decode: (raw) =>
      Object.fromEntries(
        Object.entries(raw).map(([name, member]) => [field.decode(Buffer.from(name)), value.decode(member)]),
      ),
  };
}

function preview(written: string): string {
  return JSON.stringify(written.length > 40 ? `${written.slice(0, 40)}…` : written);
}
