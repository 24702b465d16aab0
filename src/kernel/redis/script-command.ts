import { Command } from "ioredis";
import type { ScriptArgument } from "./script.ts";

/**
 * A call of a script, written into memory that is kept between calls. A call with thousands of arguments, as those that
 * settle whole batches, costs a third of what it costs to join texts and to encode the result; and bytes among the
 * arguments stay bytes.
 */
export class ScriptCommand extends Command {
  readonly #sha: string;
  readonly #keys: readonly string[];
  readonly #args: readonly ScriptArgument[];

  constructor(sha: string, keys: readonly string[], args: readonly ScriptArgument[]) {
    // What an error repeats of its command: which script it was, and nothing of what it was given.
    super("evalsha", [sha, keys.length], { replyEncoding: "utf8" });
    this.#sha = sha;
    this.#keys = keys;
    this.#args = args;
  }

  override toWritable(): Buffer {
    at = 0;
    room(SMALL * 2);
    ascii(`*${3 + this.#keys.length + this.#args.length}\r\n$7\r\nevalsha\r\n`);
    text(this.#sha);
    text(String(this.#keys.length));
    for (const key of this.#keys) text(key);
    for (const arg of this.#args)
      if (typeof arg === "string") text(arg);
      else if (typeof arg === "number") text(String(arg));
      else bytes(arg);
    // The socket may hold on to it.
    const written = Buffer.from(out.subarray(0, at));
    if (out.length > KEPT) out = Buffer.allocUnsafe(FIRST);
    return written;
  }
}

const FIRST = 65_536;
/** Memory above this is given back after an exceptional call. */
const KEPT = 8_388_608;
/** Up to this length a loop is faster than a call that leaves JavaScript. */
const SMALL = 48;
const [CR, LF] = [13, 10];
/** Longer heads than that of a text of a gigabyte do not occur. */
const LONGEST_HEAD = 16;

let out = Buffer.allocUnsafe(FIRST);
let at = 0;

function room(size: number): void {
  if (at + size <= out.length) return;
  const larger = Buffer.allocUnsafe(Math.max(out.length * 2, at + size));
  out.copy(larger, 0, 0, at);
  out = larger;
}

/** The lengths of nearly all arguments, as they are written before them. */
const heads = Array.from({ length: 2048 }, (_, size) => `$${size}\r\n`);

function ascii(short: string): void {
  for (let from = 0; from < short.length; from++) out[at++] = short.charCodeAt(from);
}

function text(value: string): void {
  const { length } = value;
  // A unit of a string has at most three bytes.
  room(length * 3 + LONGEST_HEAD + 2);
  const start = at;
  const head = length < heads.length ? heads[length]! : `$${length}\r\n`;
  ascii(head);
  if (length > SMALL || !plain(value)) {
    const size = out.write(value, start + head.length, "utf8");
    if (size !== length) {
      // Most texts are plain, so only now is it known how long this one is.
      const longer = `$${size}\r\n`;
      out.copyWithin(start + longer.length, start + head.length, start + head.length + size);
      at = start;
      ascii(longer);
    }
    at += size;
  }
  out[at++] = CR;
  out[at++] = LF;
}

/** Writes a short text; false when it has other characters than ASCII, and has to be written anew. */
function plain(value: string): boolean {
  const start = at;
  for (let from = 0; from < value.length; from++) {
    const code = value.charCodeAt(from);
    if (code > 0x7f) {
      at = start;
      return false;
    }
    out[at++] = code;
  }
  return true;
}

function bytes(value: Buffer): void {
  room(value.length + LONGEST_HEAD + 2);
  ascii(`$${value.length}\r\n`);
  out.set(value, at);
  at += value.length;
  out[at++] = CR;
  out[at++] = LF;
}
