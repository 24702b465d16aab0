import { checkedAddress, checkedName, type Mailbox } from "./mail.ts";

/** Text in headers: plain where it can be, else encoded words (RFC 2047) of at most 75 characters, one a line. */
const PLAIN = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const WIDTH = 76;
/** Bytes of text in one encoded word, so that it fits on the first line beside any header's name. */
const WORD_BYTES = 39;

/** The value of an unstructured header such as Subject, folded; `taken` is what the header's name needs. */
export function unstructured(value: string, taken: number): string {
  // A long word cannot be folded, and what looks like an encoded word would be decoded by its reader.
  if (!PLAIN.test(value) || value.includes("=?")) return encodedWords(value);
  if (value.length + taken <= WIDTH) return value;
  return folded(value, taken) ?? encodedWords(value);
}

/** `Name <address>` as From and Reply-To have it. */
export function mailbox({ name, address }: Mailbox): string {
  checkedAddress(address);
  if (name === undefined || name === "") return address;
  checkedName(name);
  return `${phrase(name)}${name.length + address.length > 50 ? "\r\n " : " "}<${address}>`;
}

function phrase(name: string): string {
  if (!PLAIN.test(name) || name.includes("=?") || name.length > 60) return encodedWords(name);
  return ATOMS.test(name) ? name : `"${name.replaceAll(/[\\"]/g, "\\$&")}"`;
}

function encodedWords(value: string): string {
  const words: string[] = [];
  let [chunk, bytes] = ["", 0];
  const close = () => words.push(`=?UTF-8?B?${Buffer.from(chunk).toString("base64")}?=`);
  for (const character of value) {
    const size = Buffer.byteLength(character);
    if (bytes + size > WORD_BYTES) {
      close();
      [chunk, bytes] = ["", 0];
    }
    chunk += character;
    bytes += size;
  }
  close();
  return words.join("\r\n ");
}

/** Broken before spaces; nothing if a single word is too long for a line. */
function folded(value: string, taken: number): string | undefined {
  let [out, width] = ["", taken];
  for (const word of value.split(" ")) {
    if (word.length > WIDTH - 1 - (out === "" ? taken : 0)) return undefined;
    if (out === "") [out, width] = [word, taken + word.length];
    else if (width + 1 + word.length > WIDTH) {
      out += `\r\n ${word}`;
      width = 1 + word.length;
    } else {
      out += ` ${word}`;
      width += 1 + word.length;
    }
  }
  return out;
}
