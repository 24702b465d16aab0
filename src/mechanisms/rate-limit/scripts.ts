import { Command } from "ioredis";
import type { Clock } from "../../kernel/clock.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { defineScript, type RedisConnection, type Script, type ScriptArgument } from "../../kernel/redis/index.ts";
import type { Limit, LimitRule } from "./limit.ts";

/** What all three scripts answer: who was refused, and which values had to be healed. Everybody else may go on. */
export interface Refusals {
  readonly refused: readonly { readonly action: number; readonly failed: number; readonly retryAfter: number }[];
  /** Positions of keys in the call. */
  readonly healed: readonly number[];
}

const NOBODY: Refusals = { refused: [], healed: [] };

function refusals(raw: number[] | 0): Refusals {
  if (raw === 0) return NOBODY;
  const end = raw.indexOf(-1);
  const refused = [];
  for (let at = 0; at < end; at += 3)
    refused.push({ action: raw[at]! - 1, failed: raw[at + 1]! - 1, retryAfter: raw[at + 2]! / 1000 });
  return { refused, healed: raw.slice(end + 1).map((position) => position - 1) };
}

// None is idempotent: a repeat would count the actions twice.

const countScript = defineScript({
  name: "rate_limit.count",
  file: new URL("./scripts/count.lua", import.meta.url),
  keys: ["...counters"],
  args: ["per_action", "...rules"],
  idempotent: false,
  reply: refusals,
});

const slideScript = defineScript({
  name: "rate_limit.slide",
  file: new URL("./scripts/slide.lua", import.meta.url),
  keys: ["...actions"],
  args: ["now", "windows", "...rules"],
  idempotent: false,
  reply: refusals,
});

const attemptScript = defineScript({
  name: "rate_limit.attempt",
  file: new URL("./scripts/attempt.lua", import.meta.url),
  keys: ["...limits"],
  args: ["now", "per_action", "...rules"],
  idempotent: false,
  reply: refusals,
});

/** Sends the actions of one group, all under the rules that the call was made for. */
export type Call = (redis: RedisConnection, clock: Clock, actions: readonly (readonly Limit[])[]) => Promise<Refusals>;

/** Fixed counters and single sliding sets have scripts of their own, which do half the work of the one for all forms. */
export function callFor(rules: readonly LimitRule[]): Call {
  if (rules.every(({ counter }) => counter)) {
    const args = [rules.length, ...rules.flatMap(({ counter }) => counter!)];
    return (redis, _clock, actions) => runAtOnce(redis, countScript, keysOf(actions), args);
  }
  const windows = rules.length === 1 ? rules[0]!.windows : undefined;
  const [script, fixed] = windows
    ? [slideScript, [windows.length / 2, ...windows]]
    : [attemptScript, [rules.length, ...rules.map(({ text }) => text)]];
  return (redis, clock, actions) => {
    const values = actions.flatMap((limits) => limits.map(({ value }) => value));
    return runAtOnce(redis, script, keysOf(actions), [clock.now().toFixed(6), ...fixed, ...values]);
  };
}

function keysOf(actions: readonly (readonly Limit[])[]): string[] {
  const keys: string[] = [];
  for (const limits of actions) for (const { key } of limits) keys.push(key);
  return keys;
}

/**
 * Sends a script without waiting for the end of the tick, as auto-pipelining does to put commands together: attempts
 * are put together already, so the wait would only make each of them a quarter slower.
 */
function runAtOnce(
  redis: RedisConnection,
  script: Script<readonly [`...${string}`], readonly string[], Refusals>,
  keys: string[],
  args: readonly ScriptArgument[],
): Promise<Refusals> {
  const call = [script.sha, keys.length, ...redis.topology.scriptKeys(keys), ...args];
  const sent = redis.commands.sendCommand(new Command("evalsha", call, { replyEncoding: "utf8" })) as Promise<
    number[] | 0
  >;
  return sent.then(refusals, (error) => {
    const message = error instanceof Error ? error.message : "";
    // The server did nothing, so the ordinary way, which loads the script first, is no repeat.
    if (message.startsWith("NOSCRIPT")) return redis.run(script, keys, [...args] as never);
    if (message.includes("WRONGTYPE"))
      throw kernelErrors.wrong_type({ message: `${script.name}: a key has the wrong Redis type`, cause: error });
    if (message.startsWith("OOM")) throw kernelErrors.redis_full({ cause: error });
    throw error;
  });
}
