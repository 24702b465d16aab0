import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * One atomic transition: a Lua file whose head says what it promises, and the typed way to call it.
 *
 * Positions have names. A last name that starts with `...` stands for any number of further keys or arguments. A test
 * compares these names with the head of the file, so neither can be changed alone.
 */
export interface ScriptPlan<K extends readonly string[], A extends readonly string[], Reply> {
  /** `family.transition`, as it appears in logs and errors. */
  readonly name: string;
  readonly file: URL;
  readonly keys: K;
  readonly args: A;
  /** True when running it twice in a row is the same as once: only then is a lost reply answered by a repeat. */
  readonly idempotent: boolean;
  /** Turns what Redis answers into a typed result. */
  reply(raw: never): Reply;
}

export type ScriptArgument = string | number | Buffer;

type Positions<Names extends readonly string[], Value> = Names extends readonly [
  infer Head extends string,
  ...infer Rest extends readonly string[],
]
  ? Head extends `...${string}`
    ? Value[]
    : [Value, ...Positions<Rest, Value>]
  : [];

export type ScriptKeys<K extends readonly string[]> = Positions<K, string>;
export type ScriptArguments<A extends readonly string[]> = Positions<A, ScriptArgument>;

export interface Script<
  K extends readonly string[] = readonly string[],
  A extends readonly string[] = readonly string[],
  Reply = unknown,
> extends ScriptPlan<K, A, Reply> {
  readonly lua: string;
  readonly sha: string;
}

const declared: Script[] = [];

/** Every script that the loaded modules declare: what a connection loads when it opens, and what the head check reads. */
export function declaredScripts(): readonly Script[] {
  return declared;
}

export function defineScript<const K extends readonly string[], const A extends readonly string[], Reply>(
  plan: ScriptPlan<K, A, Reply>,
): Script<K, A, Reply> {
  const lua = readWithFragments(plan.file);
  const script = { ...plan, lua, sha: createHash("sha1").update(lua).digest("hex") };
  if (declared.some((other) => other.name === script.name && other.sha !== script.sha))
    throw new TypeError(`two scripts are named ${script.name}`);
  declared.push(script as unknown as Script);
  return script;
}

/** Replaces each line `-- include: fragment.lua` by that file, found beside the including one. */
function readWithFragments(file: URL): string {
  return readFileSync(file, "utf8").replace(/^-- include: (\S+)$/gm, (_line, fragment: string) =>
    readFileSync(new URL(fragment, file), "utf8").trimEnd(),
  );
}

export function scriptFileName(script: Script): string {
  return basename(fileURLToPath(script.file));
}
