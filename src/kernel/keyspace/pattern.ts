import { kernelErrors } from "../errors.ts";

/** The parameter names inside a pattern, as a union: `"sms:pending:{sid}"` gives `"sid"`. */
export type ParameterOf<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterOf<Rest>
  : never;

export type Parameters<Pattern extends string> = Record<ParameterOf<Pattern>, string | number>;

/** What a key function takes: nothing for a fixed name, exactly the pattern's parameters otherwise. */
export type ParameterArguments<Pattern extends string> = [ParameterOf<Pattern>] extends [never]
  ? []
  : [parameters: Parameters<Pattern>];

export interface CompiledPattern {
  readonly pattern: string;
  readonly parameters: readonly string[];
  /** What stands before the first parameter. */
  readonly literalPrefix: string;
  /** How many characters are fixed: the more, the more specific the pattern. */
  readonly specificity: number;
  render(parameters?: Readonly<Record<string, string | number>>): string;
  /** The parameters of a name that fits, else undefined. */
  match(name: string): Record<string, string> | undefined;
}

/** What a parameter may hold unless its declaration says otherwise: one segment, without a colon. */
const ONE_SEGMENT = /[^:]+/;

export function compilePattern(
  pattern: string,
  shapes: Readonly<Record<string, RegExp | undefined>> = {},
): CompiledPattern {
  const parts = pattern.split(/\{([a-z_][a-z0-9_]*)\}/);
  const literals = parts.filter((_, index) => index % 2 === 0);
  const parameters = parts.filter((_, index) => index % 2 === 1);
  if (literals.some((literal) => /[{}]/.test(literal))) throw new TypeError(`malformed key pattern: ${pattern}`);
  for (const name of Object.keys(shapes))
    if (!parameters.includes(name)) throw new TypeError(`key pattern ${pattern} has no parameter {${name}}`);

  const shapeOf = (name: string) => shapes[name] ?? ONE_SEGMENT;
  const whole = parameters.map((name) => new RegExp(`^(?:${shapeOf(name).source})$`, shapeOf(name).flags));
  const source = parts.map((part, index) =>
    index % 2 === 0 ? part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : `(${shapeOf(part).source})`,
  );
  const matcher = new RegExp(`^${source.join("")}$`, "s");

  return {
    pattern,
    parameters,
    literalPrefix: literals[0] ?? "",
    specificity: literals.join("").length,
    render(values = {}) {
      let name = literals[0] ?? "";
      for (const [index, parameter] of parameters.entries()) {
        const value = values[parameter];
        if (value === undefined || !whole[index]!.test(String(value)))
          throw kernelErrors.bad_key_parameter({
            message: `{${parameter}} of ${pattern} must match ${shapeOf(parameter)}, which the given value does not`,
          });
        name += value + literals[index + 1]!;
      }
      return name;
    },
    match(name) {
      const found = matcher.exec(name);
      if (!found) return undefined;
      return Object.fromEntries(parameters.map((parameter, index) => [parameter, found[index + 1]!]));
    },
  };
}
