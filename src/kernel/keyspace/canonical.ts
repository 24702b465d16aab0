/**
 * Canonical JSON: keys sorted by code unit at every level, no insignificant whitespace, shortest round-trip numbers.
 * Wherever a JSON text is a member of a set or is hashed, equal values must be equal bytes; this is what makes them so.
 */
export function canonicalJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.entries(inner)
            .filter(([, member]) => member !== undefined)
            .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
        )
      : inner,
  );
  if (text === undefined) throw new TypeError("only JSON values have a canonical form");
  return text;
}
