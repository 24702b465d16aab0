import { randomBytes } from "node:crypto";
import { mailbox, unstructured } from "./encoded-words.ts";
import {
  checkedAddress,
  checkedHeader,
  checkedMessageId,
  checkedSubject,
  type Mail,
  type Mailbox,
  unsubscribeHeaders,
} from "./mail.ts";
import { areSafeLines } from "./safe-lines.ts";

/**
 * Writes the mail that nearly all mails are: text and HTML, nothing attached. One pass over the bytes into memory that is
 * kept between mails; there is no tree of parts and no stream.
 *
 * A boundary cannot occur in a part: after the two dashes it begins with `=_`, which neither quoted-printable nor base64
 * ever writes, and a part with a line that begins with two dashes is not sent as it is.
 */
export function composeMime(mail: Mail): Buffer {
  if (mail.attachments?.length)
    throw new TypeError("composeMime writes text and HTML; composeMail takes attachments too");
  const boundary = newBoundary();
  start();
  ascii(
    `${headersOf(mail).join("\r\n")}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="${boundary}"\r\n\r\n--${boundary}\r\n${TEXT_PART}`,
  );
  body(mail.text);
  if (mail.ready === undefined) {
    ascii(`\r\n--${boundary}\r\n${HTML_PART}`);
    body(mail.html);
    ascii(`\r\n--${boundary}--\r\n`);
  } else ascii(`\r\n--${boundary}\r\n${HTML_PART}${AS_IS}${mail.ready}\r\n--${boundary}--\r\n`);
  return finished();
}

const TEXT_PART = "Content-Type: text/plain; charset=utf-8\r\n";
const HTML_PART = "Content-Type: text/html; charset=utf-8\r\n";
const AS_IS = "Content-Transfer-Encoding: 7bit\r\n\r\n";

/** The headers before the structure, each ready to be written. */
export function headersOf(mail: Mail): readonly string[] {
  const lines = [`From: ${senderOf(mail.from)}`, `To: ${checkedAddress(mail.to)}`];
  if (mail.replyTo) lines.push(`Reply-To: ${senderOf(mail.replyTo)}`);
  lines.push(
    `Subject: ${unstructured(checkedSubject(mail.subject), "Subject: ".length)}`,
    `Date: ${mailDate(mail.date)}`,
    `Message-ID: <${checkedMessageId(mail.messageId)}>`,
  );
  for (const name in mail.headers) lines.push(checkedHeader(name, mail.headers[name]!));
  if (mail.listUnsubscribe) lines.push(...unsubscribeHeaders(mail.listUnsubscribe));
  return lines;
}

const senders = new WeakMap<Mailbox, string>();

/** All mails of an installation come from the same mailbox. */
function senderOf(from: Mailbox): string {
  let written = senders.get(from);
  if (written === undefined) {
    written = mailbox(from);
    senders.set(from, written);
  }
  return written;
}

let [lastSecond, lastDate] = [Number.NaN, ""];

function mailDate(seconds: number): string {
  const whole = Math.floor(seconds);
  if (whole !== lastSecond)
    [lastSecond, lastDate] = [whole, new Date(whole * 1000).toUTCString().replace("GMT", "+0000")];
  return lastDate;
}

// The process's part is random, the rest counts: nobody can guess a boundary and no two are alike.
const origin = randomBytes(9).toString("hex");
let count = 0;
const newBoundary = () => `=_${origin}_${(count++).toString(36)}`;

/** Many mails lie side by side in one piece of memory: a piece for each costs more than writing the mail does. */
const PIECE = 262_144;
let out = Buffer.allocUnsafe(PIECE);
let raw = Buffer.allocUnsafe(32_768);
/** Where the mail that is being written began, and where it goes on. */
let [began, at] = [0, 0];
/** Memory above this is given back after an exceptional mail. */
const KEPT = 1_048_576;

function start(): void {
  if (raw.length > KEPT) raw = Buffer.allocUnsafe(32_768);
  began = at;
}

function finished(): Buffer {
  return out.subarray(began, at);
}

function room(bytes: number): void {
  if (at + bytes <= out.length) return;
  const written = at - began;
  const larger = Buffer.allocUnsafe(Math.max(PIECE, (written + bytes) * 2));
  out.copy(larger, 0, began, at);
  out = larger;
  [began, at] = [0, written];
}

function ascii(text: string): void {
  room(text.length);
  at += out.write(text, at, "latin1");
}

/**
 * A part's encoding, the empty line, its bytes. What every relay leaves alone is sent as it is; text with few non-ASCII
 * characters stays readable in transit.
 */
function body(text: string): void {
  if (areSafeLines(text)) {
    ascii(AS_IS + text.replaceAll("\n", "\r\n"));
    return;
  }
  const most = text.length * 3;
  if (most > raw.length) raw = Buffer.allocUnsafe(most);
  const size = raw.write(text, 0, "utf8");
  if (size <= text.length * 1.3) {
    ascii("Content-Transfer-Encoding: quoted-printable\r\n\r\n");
    quotedPrintable(size);
  } else {
    ascii("Content-Transfer-Encoding: base64\r\n\r\n");
    base64(text);
  }
}

function base64(text: string): void {
  const encoded = Buffer.from(text.replaceAll(/\r\n?|\n/g, "\r\n")).toString("base64");
  for (let from = 0; from < encoded.length; from += 76)
    ascii(`${from === 0 ? "" : "\r\n"}${encoded.slice(from, from + 76)}`);
}

/** 1 for bytes that are written as they are, except perhaps at the start of a line. */
const INNER = new Uint8Array(256).fill(1, 0x21, 0x7f);
INNER[0x3d] = 0;
const HEX = Buffer.from("0123456789ABCDEF");
const [CR, LF, SPACE, TAB, EQUALS, DOT, CAPITAL_F, SMALL_R] = [13, 10, 32, 9, 61, 46, 70, 114];
/** Room for the `=` of a soft break within 76. */
const WIDTH = 75;

function quotedPrintable(size: number): void {
  // Three bytes for one, and three for a soft break after at most 25 of them.
  room(size * 4 + 16);
  const [from, to] = [raw, out];
  let [write, column, read] = [at, 0, 0];
  while (read < size) {
    const byte = from[read]!;
    // Nearly every byte: inside a line, and itself; a space too, when a visible byte follows. What lies behind the end of
    // the text is left from an earlier mail, so there only the careful way below decides.
    if (
      column !== 0 &&
      column < WIDTH &&
      (INNER[byte] === 1 || (byte === SPACE && read + 1 < size && INNER[from[read + 1]!] === 1))
    ) {
      to[write++] = byte;
      column++;
      read++;
      continue;
    }
    read++;
    if (byte === LF || byte === CR) {
      if (byte === CR && read < size && from[read] === LF) read++;
      to[write++] = CR;
      to[write++] = LF;
      column = 0;
      continue;
    }
    let literal = isLiteral(byte, read, size, column);
    if (column + (literal ? 1 : 3) > WIDTH) {
      to[write++] = EQUALS;
      to[write++] = CR;
      to[write++] = LF;
      column = 0;
      // At the start of a line the same byte may need more care.
      literal = isLiteral(byte, read, size, 0);
    }
    if (literal) to[write++] = byte;
    else write = escaped(byte, write);
    column += literal ? 1 : 3;
  }
  at = write;
}

/** Space before a line's end is lost on the way; a dot or "From" that starts a line is changed by old software. */
function isLiteral(byte: number, next: number, size: number, column: number): boolean {
  if (byte === SPACE || byte === TAB) return next < size && raw[next] !== LF && raw[next] !== CR;
  if (column === 0 && (byte === DOT || (byte === CAPITAL_F && raw[next] === SMALL_R))) return false;
  return INNER[byte] === 1;
}

function escaped(byte: number, write: number): number {
  out[write] = EQUALS;
  out[write + 1] = HEX[byte >> 4]!;
  out[write + 2] = HEX[byte & 15]!;
  return write + 3;
}
