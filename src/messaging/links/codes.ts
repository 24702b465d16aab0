import { randomBytes } from "node:crypto";
import { errors } from "./errors.ts";

/** `short` fits a text message, `normal` is the default, `long` is for links that are a credential. */
export const CODE_STYLES = ["short", "normal", "long"] as const;
export type CodeStyle = (typeof CODE_STYLES)[number];

const SHORTEST = 3;
const NORMAL = 16;
const LONG = 64;
/** So many collisions in a row mean that codes of this length have become rare. */
const CROWDED = 6;

/**
 * Makes codes. Short ones grow by a byte when too many in a row are taken, for the rest of the process's life: the
 * length that is needed depends on how many links there are, which nobody has to know.
 */
export class CodeMaker {
  #bytes = SHORTEST;
  #collisions = 0;

  next(style: CodeStyle): string {
    if (style === "short") return this.#short();
    return randomBytes(style === "normal" ? NORMAL : LONG).toString("base64url");
  }

  /** What came of a short code. */
  note(taken: boolean): void {
    this.#collisions = taken ? this.#collisions + 1 : 0;
    if (this.#collisions < CROWDED) return;
    this.#collisions = 0;
    this.#bytes += 1;
  }

  #short(): string {
    if (this.#bytes >= NORMAL) throw errors.codes_exhausted();
    return randomBytes(this.#bytes).toString("base64url");
  }
}
