/**
 * Canonical JSON: keys sorted by code unit at every level, no insignificant whitespace, shortest round-trip numbers.
 * Wherever a JSON text is a member of a set or is hashed, equal values must be equal bytes; this is what makes them so.
 */
export function canonicalJson(value: unknown): string {
  const text = write(value);
  if (text === undefined) throw new TypeError("only JSON values have a canonical form");
  return text;
}

/** By hand rather than by a sorted copy: objects put keys that look like numbers first, in numeric order. */
function write(value: unknown): string | undefined {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if ("toJSON" in value && typeof value.toJSON === "function") return write(value.toJSON());
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? "null").join(",")}]`;
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .flatMap(([name, member]) => {
      const written = write(member);
      return written === undefined ? [] : [`${JSON.stringify(name)}:${written}`];
    });
  return `{${members.join(",")}}`;
}
