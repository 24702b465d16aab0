import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { applyScript } from "./scripts.ts";

/** One change of a counter. Dated counters always come with a `low` of their earliest pointer. */
export type CounterOperation =
  /** Writes `value` when the pointer is absent or higher. */
  | { readonly op: "low"; readonly key: KeyName<"string">; readonly value: number }
  | { readonly op: "hlow"; readonly key: KeyName<"hash">; readonly field: string; readonly value: number }
  | { readonly op: "incr"; readonly key: KeyName<"string">; readonly by: number }
  | { readonly op: "hincr"; readonly key: KeyName<"hash">; readonly field: string; readonly by: number }
  /** As `hincr`; beyond 1000 different fields it counts on the field `__other__`. */
  | { readonly op: "xhincr"; readonly key: KeyName<"hash">; readonly field: string; readonly by: number }
  | { readonly op: "sadd"; readonly key: KeyName<"set">; readonly member: string }
  /** Moves a member; only if it moved, `low` on the pointer. */
  | {
      readonly op: "smove";
      readonly from: KeyName<"set">;
      readonly to: KeyName<"set">;
      readonly member: string;
      readonly pointer: KeyName<"string">;
      readonly value: number;
    }
  /** First operation only: when the member is in either set, nothing of the call is written. */
  | { readonly op: "unless"; readonly sets: readonly [KeyName<"set">, KeyName<"set">]; readonly member: string };

export interface EncodedOperations {
  readonly keys: string[];
  readonly args: (string | number)[];
}

/** More are sent as several calls. */
export const MAX_OPERATIONS = 400;

/** Keys and arguments as `operations.fragment.lua` reads them, for scripts that count beside their own effects. */
export function encodeOperations(operations: readonly CounterOperation[]): EncodedOperations {
  const keys: string[] = [];
  const args: (string | number)[] = [];
  for (const operation of operations)
    switch (operation.op) {
      case "low":
        keys.push(operation.key);
        args.push("low", operation.value);
        break;
      case "hlow":
        keys.push(operation.key);
        args.push("hlow", operation.field, operation.value);
        break;
      case "incr":
        keys.push(operation.key);
        args.push("incr", operation.by);
        break;
      case "hincr":
      case "xhincr":
        keys.push(operation.key);
        args.push(operation.op, operation.field, operation.by);
        break;
      case "sadd":
        keys.push(operation.key);
        args.push("sadd", operation.member);
        break;
      case "smove":
        keys.push(operation.from, operation.to, operation.pointer);
        args.push("smove", operation.member, operation.value);
        break;
      case "unless":
        keys.push(...operation.sets);
        args.push("unless", operation.member);
        break;
      default:
        operation satisfies never;
    }
  return { keys, args };
}

const isPointer = ({ op }: CounterOperation) => op === "low" || op === "hlow";
const isNothing = (operation: CounterOperation) => "by" in operation && operation.by === 0;

/**
 * Applies operations on keys of one family in one call. More than 400 are split, each part led by the pointers, which
 * may be lowered too early but never too late. Answers how many ran, or -1 when an `unless` held.
 */
export async function applyOperations(
  ctx: Pick<KernelContext, "redis">,
  operations: readonly CounterOperation[],
): Promise<number> {
  const guard = operations.filter(({ op }) => op === "unless");
  const pointers = operations.filter(isPointer);
  const rest = operations.filter(
    (operation) => !isPointer(operation) && !isNothing(operation) && operation.op !== "unless",
  );
  if (rest.length === 0 && pointers.length === 0) return 0;
  if (guard.length + pointers.length + rest.length <= MAX_OPERATIONS) {
    const { keys, args } = encodeOperations([...guard, ...pointers, ...rest]);
    return ctx.redis.run(applyScript, keys, args);
  }
  if (guard.length > 0) throw new TypeError("operations under `unless` have to fit into one call");
  const room = Math.max(1, MAX_OPERATIONS - pointers.length);
  let applied = 0;
  for (let start = 0; start < rest.length; start += room) {
    const { keys, args } = encodeOperations([...pointers, ...rest.slice(start, start + room)]);
    applied += await ctx.redis.run(applyScript, keys, args);
  }
  return applied;
}
