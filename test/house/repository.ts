import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository as the checks of the house see it: files on disk, by paths relative to its root. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

const NOT_OURS = new Set(["node_modules", "dist", ".git", ".build", ".carillon", "coverage"]);

/** Every file below the folders, without packages and what tools build. */
export function filesIn(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) => walk(join(root, folder))).sort();
}

function walk(folder: string): string[] {
  const entries = (() => {
    try {
      return readdirSync(folder, { withFileTypes: true });
    } catch {
      return [];
    }
  })();
  return entries.flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return walk(path);
    return entry.isFile() ? [relative(root, path).split(sep).join("/")] : [];
  });
}

/** Files that stand in the root itself. */
export function filesInRoot(): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.log$|^\.env$|tsbuildinfo$/.test(entry.name))
    .map(({ name }) => name)
    .sort();
}

const texts = new Map<string, string>();

export function read(file: string): string {
  let text = texts.get(file);
  if (text === undefined) {
    text = readFileSync(join(root, file), "utf8");
    texts.set(file, text);
  }
  return text;
}

export function readIfThere(file: string): string | undefined {
  try {
    return read(file);
  } catch {
    return undefined;
  }
}

export const isTypeScript = (file: string) => file.endsWith(".ts") || file.endsWith(".tsx");
/** Tests, suites that tests of several implementations share, and what tests of one folder set up. */
export const isTest = (file: string) => /\.(test|conformance|fixture)\.tsx?$/.test(file) || file.startsWith("test/");

const pureCode = new Map<string, string>();

/**
 * The file's code without comments, and without what stands inside strings and regular expressions, line by line as it
 * was: so that a check for a word finds code, not talk about code.
 */
export function code(file: string): string {
  let stripped = pureCode.get(file);
  if (stripped === undefined) {
    stripped = strip(read(file));
    pureCode.set(file, stripped);
  }
  return stripped;
}

// In this order: comments, strings, templates without nested templates, regular expressions after an operator.
const TALK =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|(?<=[=(,:[!&|?{};]\s*|return\s+)\/(?![/*])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/g;

function strip(text: string): string {
  return text.replace(TALK, (found) => {
    const opening = found[0] as string;
    if (opening === "/") return found.replace(/[^\n]/g, " ");
    if (opening !== "`") return opening + " ".repeat(Math.max(0, found.length - 2)) + opening;
    // What a template computes is code.
    return found.replace(
      /(\$\{[^}]*\})|[^\n]/g,
      (part, computed: string | undefined) => computed ?? (part === "`" ? "`" : " "),
    );
  });
}

/** `src/a.ts:12` for every line of the code that fits. */
export function linesWith(file: string, form: RegExp, text = code(file)): string[] {
  return text.split("\n").flatMap((line, index) => (form.test(line) ? [`${file}:${index + 1}`] : []));
}

export interface Import {
  readonly specifier: string;
  /** The file it means, where it is relative. */
  readonly target: string | undefined;
  /** Only types are imported: nothing is left of it at run time. */
  readonly typesOnly: boolean;
}

const IMPORT =
  /^\s*(?:import|export)\b([^"';]*?)\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm;

const imports = new Map<string, readonly Import[]>();

/** What a module imports. */
export function importsOf(file: string): readonly Import[] {
  const known = imports.get(file);
  if (known) return known;
  const found = [...read(file).matchAll(IMPORT)].map((match): Import => {
    const names = match[1]?.trim();
    const specifier = (match[2] ?? match[3] ?? match[4]) as string;
    const target = specifier.startsWith(".")
      ? relative(root, resolve(root, dirname(file), specifier))
          .split(sep)
          .join("/")
      : undefined;
    const members = /^\{(.*)\}$/s
      .exec(names ?? "")?.[1]
      ?.split(",")
      .filter((member) => member.trim() !== "");
    const typesOnly = names?.startsWith("type ") || members?.every((member) => /^\s*type\s/.test(member)) || false;
    return { specifier, target, typesOnly };
  });
  imports.set(file, found);
  return found;
}

/** Passes when there is no fault; fails with what to do, then the faults. */
export function expectNone(whatToDo: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${whatToDo}\n${faults.map((fault) => `  ${fault}`).join("\n")}`);
}
