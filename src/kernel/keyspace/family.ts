import type { AnyKey, Declaration, Key } from "./declare.ts";

export interface FamilyOptions {
  /**
   * The parameter that shards this family on a Cluster: keys that have it are rendered under `{family:value}:`, and
   * the family's scripts only ever touch keys of one such value.
   */
  readonly shardBy?: string;
}

/**
 * The unit of atomicity: a script touches keys of one family, and `shared` keys. The declarations stay what they are
 * and become callable: `keys.pendingItem({ sid })` is the key's name.
 */
export type Family<T extends Record<string, Declaration> = Record<string, Declaration>> = {
  readonly [Name in keyof T]: Key<T[Name]>;
};

export interface FamilyPlan {
  readonly name: string;
  readonly shardBy: string | undefined;
  readonly keys: readonly AnyKey[];
}

const plans = new WeakMap<object, FamilyPlan>();

export function family<const T extends Record<string, Declaration>>(
  name: string,
  declarations: T,
  options: FamilyOptions = {},
): Family<T> {
  const keys = Object.entries(declarations).map(([property, declaration]) => {
    const key = (parameters?: Record<string, string | number>) => declaration.compiled.render(parameters);
    return [property, Object.assign(key, declaration, { family: name })] as const;
  });
  const result = Object.fromEntries(keys) as unknown as Family<T>;
  plans.set(result, { name, shardBy: options.shardBy, keys: keys.map(([, key]) => key as unknown as AnyKey) });
  return result;
}

/** The plan behind a family, for the catalogue. */
export function planOf(keys: Family<never> | object): FamilyPlan {
  const plan = plans.get(keys);
  if (!plan) throw new TypeError("not a family of keys: declare it with family(name, { ... })");
  return plan;
}
