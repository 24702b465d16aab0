/** A text with places for parameters: `Hello {name}`, `{event.title}`; `{{` and `}}` are braces. */
export interface Format {
  /** The paths that it names, each once, in order. */
  readonly parameters: readonly string[];
  /** Throws a `MissingParameter` for a path that leads nowhere. */
  render(values: Readonly<Record<string, unknown>>): string;
}

export class MissingParameter extends Error {
  readonly parameter: string;

  constructor(parameter: string) {
    super(`the parameter ${parameter} is missing`);
    this.parameter = parameter;
  }
}

export class BadFormat extends Error {}

const PIECE = /\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}|[{}]/g;
const compiled = new Map<string, Format>();
const MOST = 5_000;

/** Formats are compiled once: the same few are rendered for everybody. */
export function compileFormat(text: string): Format {
  const known = compiled.get(text);
  if (known) return known;
  const format = compile(text);
  if (compiled.size >= MOST) compiled.clear();
  compiled.set(text, format);
  return format;
}

function compile(text: string): Format {
  const parts: (string | { readonly path: readonly string[]; readonly name: string })[] = [];
  let literal = "";
  let end = 0;
  for (const match of text.matchAll(PIECE)) {
    literal += text.slice(end, match.index);
    end = match.index + match[0].length;
    const name = match[1];
    if (name !== undefined) {
      parts.push(literal, { path: name.split("."), name });
      literal = "";
    } else if (match[0] === "{{" || match[0] === "}}") literal += match[0][0];
    else throw new BadFormat(`there is a lone ${match[0]} in ${JSON.stringify(text)}: write it twice`);
  }
  parts.push(literal + text.slice(end));
  const names = parts.flatMap((part) => (typeof part === "string" ? [] : [part.name]));
  return {
    parameters: [...new Set(names)],
    render: (values) =>
      parts.map((part) => (typeof part === "string" ? part : textOf(part.name, valueAt(values, part.path)))).join(""),
  };
}

export function valueAt(values: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = values;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw new MissingParameter(name);
}
