import type { KeyName } from "../../kernel/keyspace/index.ts";

/** Something that the completion of items causes elsewhere in their family, or on a shared list such as the job queue. */
export type Effect =
  | { readonly kind: "push"; readonly key: KeyName<"list">; readonly items: readonly (string | Buffer)[] }
  | { readonly kind: "push_front"; readonly key: KeyName<"list">; readonly items: readonly (string | Buffer)[] }
  | { readonly kind: "add"; readonly key: KeyName<"set">; readonly members: readonly string[] }
  /** Counters in a hash; an amount of zero is dropped. */
  | { readonly kind: "count"; readonly key: KeyName<"hash">; readonly by: Readonly<Record<string, number>> }
  | { readonly kind: "count_one"; readonly key: KeyName<"string">; readonly by: number }
  /** A pointer to the earliest date there is: set if absent, lowered if higher. */
  | { readonly kind: "lower"; readonly key: KeyName<"string">; readonly to: number };

const COMMANDS = {
  push: "rpush",
  push_front: "lpush",
  add: "sadd",
  count: "hincrby",
  count_one: "incrby",
  lower: "lower",
} as const;

/** Even, so that a counter's field and amount stay together; Lua hands on no more than some thousand values at once. */
const VALUES_PER_EFFECT = 1000;

/** Keys and flat arguments for the effects fragment. Effects without a value are left out. */
export function encodeEffects(effects: readonly Effect[]): { targets: string[]; args: (string | number | Buffer)[] } {
  const targets: string[] = [];
  const args: (string | number | Buffer)[] = [];
  for (const effect of effects) {
    const values = valuesOf(effect);
    if (values.length === 0) continue;
    let position = targets.indexOf(effect.key) + 1;
    if (position === 0) position = targets.push(effect.key);
    for (let from = 0; from < values.length; from += VALUES_PER_EFFECT) {
      const some = values.slice(from, from + VALUES_PER_EFFECT);
      args.push(COMMANDS[effect.kind], position, some.length, ...some);
    }
  }
  return { targets, args };
}

function valuesOf(effect: Effect): readonly (string | number | Buffer)[] {
  switch (effect.kind) {
    case "push":
    case "push_front":
      return effect.items;
    case "add":
      return effect.members;
    case "count":
      return Object.entries(effect.by).flatMap(([field, by]) => (by === 0 ? [] : [field, by]));
    case "count_one":
      return effect.by === 0 ? [] : [effect.by];
    case "lower":
      return [effect.to];
  }
}
