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
}

export type Decoded<C> = C extends Codec<infer T> ? T : never;

export function undecodable(shape: string, reason: string): Error {
  return kernelErrors.undecodable({ message: `expected ${shape}: ${reason}` });
}

export const text: Codec<string> = {
  shape: "text",
  encode: (value) => value,
  decode(raw) {
    if (!isUtf8(raw)) throw undecodable("text", "the bytes are not UTF-8");
    return raw.toString("utf8");
  },
};

export const binary: Codec<Buffer> = { shape: "bytes", encode: (value) => value, decode: (raw) => raw };

export const integer: Codec<number> = {
  shape: "integer",
  encode: (value) => String(value),
  decode(raw) {
    const written = raw.toString("latin1");
    const value = Number(written);
    if (!/^-?\d{1,16}$/.test(written) || !Number.isSafeInteger(value))
      throw undecodable("an integer", `got ${preview(written)}`);
    return value;
  },
};

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
export const decimal: Codec<number> = {
  shape: "decimal number",
  encode: (value) => String(value),
  decode(raw) {
    const written = raw.toString("latin1").trim();
    const value = Number(written);
    if (!DECIMAL.test(written) || !Number.isFinite(value))
      throw undecodable("a decimal number", `got ${preview(written)}`);
    return value;
  },
};

/** Exactly this text and nothing else, such as the `1` of a basic lock. */
export function literal<const Value extends string>(value: Value): Codec<Value> {
  return {
    shape: `the text \`${value}\``,
    encode: () => value,
    decode(raw) {
      if (raw.toString("utf8") !== value) throw undecodable(`the text ${value}`, `got ${preview(raw.toString())}`);
      return value;
    },
  };
}

/** Text of a given form. */
export function matching(form: RegExp, shape: string): Codec<string> {
  return {
    shape,
    encode: (value) => value,
    decode(raw) {
      const written = raw.toString("utf8");
      if (!form.test(written)) throw undecodable(shape, `got ${preview(written)}`);
      return written;
    },
  };
}

export interface JsonCodec<T> extends Codec<T> {
  readonly schema: z.ZodType<T>;
}

/** JSON checked by a schema. `canonical` also demands the canonical form, as members of sets need it. */
export function json<T>(schema: z.ZodType<T>, options: { canonical?: boolean; shape?: string } = {}): JsonCodec<T> {
  const shape = options.shape ?? `${options.canonical ? "canonical " : ""}JSON${fieldsOf(schema)}`;
  return {
    shape,
    schema,
    encode: options.canonical ? canonicalJson : (value) => JSON.stringify(value),
    decode(raw) {
      const written = raw.toString("utf8");
      let value: unknown;
      try {
        value = JSON.parse(written);
      } catch {
        throw undecodable(shape, `not JSON: ${preview(written)}`);
      }
      const parsed = schema.safeParse(value);
      if (!parsed.success) throw undecodable(shape, z.prettifyError(parsed.error).replaceAll("\n", " "));
      if (options.canonical && canonicalJson(value) !== written)
        throw undecodable(shape, "keys are not sorted or whitespace is left");
      return parsed.data;
    },
  };
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
}

// biome-ignore lint/suspicious/noExplicitAny: a record of codecs of any value type; HashValue recovers each of them
export function fields<const F extends Record<string, Codec<any> | OptionalField<any>>>(
  codecs: F,
): HashCodec<HashValue<F>> & { readonly fields: F } {
  const entries = Object.entries(codecs).map(([name, codec]) =>
    "optional" in codec ? { name, codec: codec.optional, optional: true } : { name, codec, optional: false },
  );
  return {
    fields: codecs,
    shape: entries.map((entry) => `\`${entry.name}\`${entry.optional ? "?" : ""}: ${entry.codec.shape}`).join(", "),
    encode(value) {
      const given: Record<string, unknown> = value;
      return entries.flatMap(({ name, codec }) => (given[name] === undefined ? [] : [name, codec.encode(given[name])]));
    },
    decode(raw) {
      const result: Record<string, unknown> = {};
      for (const { name, codec, optional: mayBeAbsent } of entries) {
        const value = raw[name];
        if (value !== undefined) result[name] = codec.decode(value);
        else if (!mayBeAbsent) throw undecodable("a hash", `field ${name} is missing`);
      }
      const unknown = Object.keys(raw).filter((name) => !Object.hasOwn(codecs, name));
      if (unknown.length > 0) throw undecodable("a hash", `unknown field ${unknown.join(", ")}`);
      return result as HashValue<F>;
    },
  };
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
