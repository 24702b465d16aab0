import type { Brand } from "./brand.ts";
import { isMailUrl } from "./parameters.ts";

/**
 * What a mail is written with. A template is a tagged literal whose slots are functions of the parameters. It is taken
 * apart once, when the module loads: fixed text of neighbouring and nested fragments is joined, each slot becomes a
 * function that returns finished text. Rendering only concatenates.
 *
 * The tag knows where a slot stands. In HTML everything is escaped; inside href and src only https (and http on this
 * machine) passes; where escaping would not help (names, unquoted values, styles, scripts, comments) the template is
 * refused when it is declared, long before somebody sends it.
 */
export type Kind = "html" | "text";
export type Write<P> = (parameters: P, brand: Brand) => string;
type Piece<P> = string | Write<P>;

export interface Fragment<K extends Kind, P> {
  readonly kind: K;
  readonly pieces: readonly Piece<P>[];
}

export type Value<P> = (parameters: P, brand: Brand) => string | number;
export type Slot<K extends Kind, P> = string | number | Value<P> | Fragment<K, P>;
export type Html<P> = Fragment<"html", P>;
export type Text<P> = Fragment<"text", P>;

const brandWrites = new WeakSet<object>();

/** Marks what depends on the brand alone, and is therefore the same in many mails. */
export function ofBrand<F extends (parameters: never, brand: Brand) => string | number>(value: F): F {
  brandWrites.add(value);
  return value;
}

export function isOfBrand(value: object): boolean {
  return brandWrites.has(value);
}

export function html<P>(texts: TemplateStringsArray, ...slots: readonly Slot<"html", P>[]): Html<P> {
  let before = "";
  const pieces = texts.flatMap((text, at): readonly Piece<P>[] => {
    const fixed = text.replaceAll(/\n\s+/g, "\n");
    before += fixed;
    if (at === slots.length) return [fixed];
    const slot = slots[at]!;
    const place = placeOf(before);
    // What stands here does not change where the next slot stands, unless it is in the middle of a tag.
    before += "_";
    return [fixed, ...htmlSlot(slot, place)];
  });
  return { kind: "html", pieces };
}

export function text<P>(texts: TemplateStringsArray, ...slots: readonly Slot<"text", P>[]): Text<P> {
  const pieces = texts.flatMap((part, at): readonly Piece<P>[] => {
    const fixed = part.replaceAll(/\n[ \t]+/g, "\n");
    if (at === slots.length) return [fixed];
    const slot = slots[at]!;
    if (typeof slot === "object") return [fixed, ...slot.pieces];
    return [fixed, typeof slot === "function" ? (p, brand) => plain(textOf(slot(p, brand))) : String(slot)];
  });
  return { kind: "text", pieces };
}

/** Text of several lines: escaped, each line break a `<br>`. */
export function lines<P>(value: Value<P>): Html<P> {
  const write: Write<P> = (p, brand) => escapeHtml(plain(String(value(p, brand)))).replaceAll("\n", "<br>\n");
  return { kind: "html", pieces: [write] };
}

export function join<K extends Kind, P>(kind: K, fragments: readonly Fragment<K, P>[]): Fragment<K, P> {
  return { kind, pieces: fragments.flatMap(({ pieces }) => pieces) };
}

/** The fragment if there is a value, made of that value; nothing otherwise. */
export function given<K extends Kind, P, V>(pick: (p: P) => V | undefined, fragment: Fragment<K, V>): Fragment<K, P> {
  const write = writer(fragment);
  const piece: Write<P> = (p, brand) => {
    const value = pick(p);
    return value === undefined ? "" : write(value, brand);
  };
  return { kind: fragment.kind, pieces: [piece] };
}

/** The fragment once for each value. */
export function each<K extends Kind, P, V>(pick: (p: P) => readonly V[], fragment: Fragment<K, V>): Fragment<K, P> {
  const write = writer(fragment);
  const piece: Write<P> = (p, brand) => {
    let all = "";
    for (const value of pick(p)) all += write(value, brand);
    return all;
  };
  return { kind: fragment.kind, pieces: [piece] };
}

/** The fragment as one function: fixed text between slots is joined here, once. */
export function writer<P>({ pieces }: Fragment<Kind, P>): Write<P> {
  const fixed: string[] = [""];
  const slots: Write<P>[] = [];
  for (const piece of pieces)
    if (typeof piece === "string") fixed[fixed.length - 1] += piece;
    else {
      slots.push(piece);
      fixed.push("");
    }
  return (p, brand) => {
    let all = fixed[0]!;
    for (let at = 0; at < slots.length; at++) all += slots[at]!(p, brand) + fixed[at + 1]!;
    return all;
  };
}

type Place = "content" | "value" | "url";

function htmlSlot<P>(slot: Slot<"html", P>, place: Place): readonly Piece<P>[] {
  if (typeof slot === "object") {
    if (place !== "content") throw new TypeError("markup cannot stand inside an attribute; give a value");
    return slot.pieces;
  }
  const value = typeof slot === "function" ? slot : () => slot;
  const finish = place === "url" ? safeUrl : (raw: string) => escapeHtml(plain(raw));
  if (typeof slot !== "function") return [finish(String(slot))];
  const write: Write<P> = (p, brand) => finish(textOf(value(p, brand)));
  return [isOfBrand(slot) ? ofBrand(write) : write];
}

const textOf = (value: string | number): string => (typeof value === "string" ? value : String(value));

/** Where a slot stands that follows this markup. */
function placeOf(before: string): Place {
  const open = before.lastIndexOf("<");
  if (open <= before.lastIndexOf(">")) {
    const element = /<(style|script)\b[^>]*>(?![\s\S]*<\/\1)/i.exec(before)?.[1];
    if (element) throw new TypeError(`a slot cannot stand inside <${element}>`);
    return "content";
  }
  const tag = before.slice(open);
  if (tag.startsWith("<!--")) throw new TypeError("a slot cannot stand inside a comment");
  const attribute = /\s([a-z-]+)="([^"]*)$/i.exec(tag);
  if (!attribute) throw new TypeError(`a slot inside a tag must be a value in double quotes: ${tag}`);
  const [, name, value] = attribute as unknown as [string, string, string];
  if (/^on/i.test(name)) throw new TypeError(`a slot cannot stand in ${name}`);
  if (!/^(href|src|background|action)$/i.test(name)) return "value";
  if (value !== "") throw new TypeError(`a slot in ${name} must be the whole address`);
  return "url";
}

const SPECIAL = /[&<>"']/;
const SPECIALS = /[&<>"']/g;
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(raw: string): string {
  return SPECIAL.test(raw) ? raw.replace(SPECIALS, (character) => ENTITIES[character]!) : raw;
}

function safeUrl(raw: string): string {
  if (!isMailUrl(raw)) throw new TypeError("a link in a mail is neither https nor on this machine");
  return escapeHtml(raw);
}

/** One kind of line break, whatever the value had. */
function plain(raw: string): string {
  return raw.includes("\r") ? raw.replaceAll(/\r\n?/g, "\n") : raw;
}
