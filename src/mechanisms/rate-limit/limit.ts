import { randomToken } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";

/** What happens while Redis cannot be asked: sign-in is closed, nearly everything else stays open. */
export type WhenUnreachable = "open" | "closed";

interface LimitOptions {
  /** What a refusal is called; programs decide on it. */
  readonly reason: string;
  /** Default: open. */
  readonly whenUnreachable?: WhenUnreachable;
  /** A refused attempt is recorded too. Gap counters and sliding lists always do. */
  readonly punish?: boolean;
}

/** A rule, declared once; bound to a key it is one `Limit` of an action. Times are seconds. */
export interface LimitRule {
  readonly reason: string;
  readonly whenUnreachable: WhenUnreachable;
  /** The rule as the script for all forms reads it. Rules with equal text can share a call. */
  readonly text: string;
  /** Its numbers as the script of its own form takes them, where it has one. */
  readonly counter?: readonly [limit: number, windowMs: number];
  readonly windows?: readonly number[];
}

/** One rule on one key, and the value or id that this action brings where the form wants one. */
export interface Limit {
  readonly rule: LimitRule;
  readonly key: KeyName;
  readonly value: string;
}

const milliseconds = (seconds: number) => Math.max(1, Math.round(seconds * 1000));
const bit = (flag: boolean | undefined) => (flag ? 1 : 0);

function rule(options: LimitOptions, text: string, fast: Pick<LimitRule, "counter" | "windows"> = {}): LimitRule {
  return { reason: options.reason, whenUnreachable: options.whenUnreachable ?? "open", text, ...fast };
}

/** Expiring flag: one action a window. */
export function flagLimit(options: LimitOptions & { readonly window: number }) {
  const declared = rule(options, `f ${bit(options.punish)} ${milliseconds(options.window)}`);
  return (key: KeyName<"string">): Limit => ({ rule: declared, key, value: "" });
}

/**
 * Counter: `limit` actions pass. `fixed` starts its window with the first action; `gap` starts it anew with every
 * attempt, refused ones too, and so counts attempts that follow each other by less than a window.
 */
export function counterLimit(
  options: LimitOptions & { readonly limit: number; readonly window: number; readonly mode: "fixed" | "gap" },
) {
  const { limit, mode, punish } = options;
  const window = milliseconds(options.window);
  const declared =
    mode === "gap"
      ? rule(options, `g 1 ${limit} ${window}`)
      : rule(options, `b ${bit(punish)} ${limit} ${window}`, punish ? {} : { counter: [limit, window] });
  return (key: KeyName<"string">): Limit => ({ rule: declared, key, value: "" });
}

/** Sliding list: every attempt is recorded; the `limit`-th within one window is the first to be refused. */
export function slidingListLimit(
  options: Omit<LimitOptions, "punish"> & { readonly limit: number; readonly window: number },
) {
  const declared = rule(options, `l 1 ${options.limit} ${milliseconds(options.window)}`);
  return (key: KeyName<"list">): Limit => ({ rule: declared, key, value: "" });
}

/** Sliding set: `limit` actions pass in each of the windows. The id is random unless the family keeps its own there. */
export function slidingSetLimit(
  options: LimitOptions & { readonly windows: readonly { readonly window: number; readonly limit: number }[] },
) {
  const windows = [...options.windows]
    .sort((a, b) => b.window - a.window)
    .flatMap(({ window, limit }) => [milliseconds(window), limit]);
  const declared = rule(options, `z ${bit(options.punish)} ${windows.join(" ")}`, options.punish ? {} : { windows });
  return (key: KeyName<"zset">, id: string = randomToken()): Limit => ({ rule: declared, key, value: id });
}

/** Distinct values: `limit` different ones pass, a known one costs nothing. `extend` starts the TTL anew each time. */
export function distinctSetLimit(
  options: LimitOptions & { readonly limit: number; readonly ttl: number; readonly extend?: boolean },
) {
  const { limit, ttl, extend, punish } = options;
  const declared = rule(options, `s ${bit(punish)} ${limit} ${milliseconds(ttl)} ${bit(extend)}`);
  return (key: KeyName<"set">, value: string): Limit => ({ rule: declared, key, value });
}

/** Distinct values, each remembered for a window from the time it first came. */
export function distinctTimesLimit(options: LimitOptions & { readonly limit: number; readonly window: number }) {
  const declared = rule(options, `d ${bit(options.punish)} ${options.limit} ${milliseconds(options.window)}`);
  return (key: KeyName<"zset">, value: string): Limit => ({ rule: declared, key, value });
}
