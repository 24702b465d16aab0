/** How a text is cut up for carriers, who bill by the piece. */
export interface Segments {
  /** `GSM-7` has 160 places for the usual Latin letters; one sign outside of it makes the whole text `UCS-2`, with 70. */
  readonly encoding: "GSM-7" | "UCS-2";
  /** Places that the text takes. */
  readonly units: number;
  readonly segments: number;
  /** The signs that made it `UCS-2`, each once: often a curly quote or a dash that a plain one could replace. */
  readonly unusual: readonly string[];
}

const BASIC = new Set(
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
);
/** These take two places: a sign that says so, and their own. */
const EXTENDED = new Set("\f^{}\\[~]|€");

/** Places in a text of one piece, and in each of several: the rest of those says how they belong together. */
const PLACES = { "GSM-7": { alone: 160, joined: 153 }, "UCS-2": { alone: 70, joined: 67 } } as const;

/** Counts the pieces of a text. What takes two places is never cut in half, so a piece may end one place early. */
export function segmentsOf(body: string): Segments {
  const signs = [...body];
  const unusual = [...new Set(signs.filter((sign) => !BASIC.has(sign) && !EXTENDED.has(sign)))];
  const encoding = unusual.length === 0 ? "GSM-7" : "UCS-2";
  const widthOf = (sign: string) => (encoding === "UCS-2" ? sign.length : EXTENDED.has(sign) ? 2 : 1);
  const { alone, joined } = PLACES[encoding];
  const units = signs.reduce((sum, sign) => sum + widthOf(sign), 0);
  if (units <= alone) return { encoding, units, segments: 1, unusual };
  let segments = 1;
  let used = 0;
  for (const sign of signs) {
    const width = widthOf(sign);
    if (used + width > joined) {
      segments += 1;
      used = 0;
    }
    used += width;
  }
  return { encoding, units, segments, unusual };
}
