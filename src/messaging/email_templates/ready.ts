import type { Brand } from "./brand.ts";
import { type Html, isOfBrand, type Write } from "./markup.ts";
import { isSafeLine, LONGEST_LINE } from "./safe-lines.ts";

/** HTML, and the same as it stands in a mail where every relay leaves it alone: see `safe-lines.ts`. */
export interface ReadyHtml {
  readonly html: string;
  readonly ready: string | undefined;
}

/** Fixed text between two slots. */
interface Part {
  readonly html: string;
  /** With the line breaks of a mail. */
  readonly ready: string;
  /** Whether a line ends here, so that what comes after belongs to another line than what came before. */
  readonly breaks: boolean;
  /** How much of the part belongs to the line before its first break, and how much to the line after its last. */
  readonly head: number;
  readonly tail: number;
  /** The next slot's value begins a line. */
  readonly opens: boolean;
  /** The last slot's value ends a line. */
  readonly closes: boolean;
}

interface Plan<P> {
  readonly brand: Brand;
  readonly parts: readonly Part[];
  readonly slots: readonly Write<P>[];
  /** Whether all fixed lines are safe; what is not cannot become so by any value. */
  readonly isSafe: boolean;
}

/**
 * A fragment as a function that also says whether its HTML may be sent as it is. Nearly all of a mail is the same in every
 * mail, so that part is looked at once for each brand: values on one line that are plain ASCII cannot change the answer,
 * unless they begin or end a line or make it too long. For all other values the writer of mails looks at the whole.
 */
export function readyWriter<P>({ pieces }: Html<P>): (p: P, brand: Brand) => ReadyHtml {
  let plan: Plan<P> | undefined;
  return (p, brand) => {
    if (plan?.brand !== brand) plan = planOf(pieces, brand);
    const { parts, slots } = plan;
    const first = parts[0]!;
    let [html, ready, isSafe, line] = [first.html, first.ready, plan.isSafe, first.tail];
    for (let at = 0; at < slots.length; at++) {
      const value = slots[at]!(p, brand);
      const after = parts[at + 1]!;
      html += value + after.html;
      if (!isSafe) continue;
      ready += value + after.ready;
      line += value.length + after.head;
      isSafe = line <= LONGEST_LINE && isPlain(value, parts[at]!.opens, after.closes);
      if (after.breaks) line = after.tail;
    }
    return { html, ready: isSafe ? ready : undefined };
  };
}

const OTHER = /[^\x20-\x7e]/;

function isPlain(value: string, opens: boolean, closes: boolean): boolean {
  if (value === "") return !opens && !closes;
  if (OTHER.test(value)) return false;
  if (opens && !/[A-EG-Za-z0-9<&(]/.test(value[0]!)) return false;
  return !closes || value[value.length - 1] !== " ";
}

function planOf<P>(pieces: Html<P>["pieces"], brand: Brand): Plan<P> {
  const fixed: string[] = [""];
  const slots: Write<P>[] = [];
  for (const piece of pieces)
    if (typeof piece === "string") fixed[fixed.length - 1] += piece;
    else if (isOfBrand(piece)) fixed[fixed.length - 1] += piece(undefined as P, brand);
    else {
      slots.push(piece);
      fixed.push("");
    }
  const parts = fixed.map((text, at) => partOf(text, at === 0, at === slots.length));
  return { brand, parts, slots, isSafe: fixed.every((text, at) => isSafePart(text, at === 0, at === slots.length)) };
}

function partOf(html: string, isFirst: boolean, isLast: boolean): Part {
  const [from, to] = [html.indexOf("\n"), html.lastIndexOf("\n")];
  const breaks = from >= 0;
  const head = breaks ? from : html.length;
  const tail = html.length - to - 1;
  return {
    html,
    ready: html.replaceAll("\n", "\r\n"),
    breaks,
    head,
    tail,
    opens: (breaks || isFirst) && tail === 0,
    closes: (breaks || isLast) && head === 0,
  };
}

/** All lines of a part, those that it only begins or ends too. */
function isSafePart(html: string, isFirst: boolean, isLast: boolean): boolean {
  if (OTHER.test(html.replaceAll("\n", ""))) return false;
  const lines = html.split("\n");
  return lines.every((line, at) => {
    const begins = at > 0 || isFirst;
    const ends = at < lines.length - 1 || isLast;
    if (begins && !ends && /^(?:-|Fr?o?)$/.test(line)) return false;
    // What is missing is filled with a letter: harmless at either end.
    return isSafeLine(`${begins ? "" : "x"}${line}${ends ? "" : "x"}`);
  });
}
