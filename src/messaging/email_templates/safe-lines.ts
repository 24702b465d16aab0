/**
 * Lines that every relay leaves alone: plain ASCII, neither too long nor with anything at their ends that old software
 * changes (a dot, `From`, blanks), and none that could be taken for the boundary between the parts of a mail.
 */

/** No line of a mail may be longer (RFC 5322). */
export const LONGEST_LINE = 998;

const UNSAFE = /[^\t\n\x20-\x7e]/;
const [SPACE, TAB, DASH, DOT, CAPITAL_F] = [32, 9, 45, 46, 70];

/** Whether a text may be sent as it is, with other line breaks. */
export function areSafeLines(text: string): boolean {
  if (UNSAFE.test(text)) return false;
  let from = 0;
  for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
    if (!isSafe(text, from, to)) return false;
    from = to + 1;
  }
  return isSafe(text, from, text.length);
}

export const isSafeLine = (line: string): boolean => isSafe(line, 0, line.length);

function isSafe(text: string, from: number, to: number): boolean {
  if (to === from) return true;
  const [first, last] = [text.charCodeAt(from), text.charCodeAt(to - 1)];
  if (last === SPACE || last === TAB || to - from > LONGEST_LINE) return false;
  if (first === DASH) return text.charCodeAt(from + 1) !== DASH;
  return first !== DOT && (first !== CAPITAL_F || !text.startsWith("From", from));
}
