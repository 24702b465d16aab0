import type { AnyKey } from "./declare.ts";
import type { Inspected, Sample } from "./inspect.ts";

/** Why the sampled value does not have the declared shape; undefined when it does. */
export function decodeSample(entry: Pick<AnyKey, "value" | "type">, key: Inspected): string | undefined {
  try {
    decodeElements(entry, key);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * The sampled value decoded: a string's value, a hash as an object, other collections as a list of elements. Throws when
 * the shape is another one, undefined when the value was not read.
 */
export function decodeElements(entry: Pick<AnyKey, "value" | "type">, key: Inspected): unknown {
  const { sample } = key;
  const { element, hash } = entry.value;
  if (sample === undefined) return undefined;
  if (hash && entry.type === "stream")
    return sample.map((fields) => hash.decode(pairsOf(fields as readonly Buffer[] as Sample)));
  if (hash) {
    // A shape that wants certain fields cannot be judged by a part of them, but one that has too many is wrong by that.
    if (!key.whole && !hash.partial) throw new Error(`has ${key.length} fields, far more than declared`);
    return hash.decode(pairsOf(sample));
  }
  if (!element) return undefined;
  if (entry.type === "string") return element.decode(sample[0] as Buffer);
  return (sample as readonly Buffer[]).map((raw) => element.decode(raw));
}

function pairsOf(flat: Sample): Record<string, Buffer> {
  const pairs: Record<string, Buffer> = Object.create(null);
  for (let index = 0; index < flat.length; index += 2)
    pairs[(flat[index] as Buffer).toString("utf8")] = flat[index + 1] as Buffer;
  return pairs;
}
