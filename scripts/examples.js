// node scripts/examples.js: copies code of docs/examples into the pages that show it. --check only compares.
// A section is named by its file as seen from docs/, or by a file and some of its declarations: examples/notes/jobs.ts#expireNotes.
// Of a file of tests it shows one test, by its title.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { refresh } from "./sections.js";
import { explain, root, StepFailed } from "./steps.js";

/** The declaration with this name, from its first line to the line that closes it. */
function declaration(source, name, path) {
  const start = new RegExp(`^(?:export )?(?:async function|function|const) ${name}\\b`, "m").exec(source)?.index;
  if (start === undefined) throw new StepFailed(`${path} declares no ${name}.`);
  const rest = source.slice(start);
  const firstLine = rest.split("\n")[0];
  if (firstLine.endsWith(";")) return firstLine;
  const end = /^[}\])]+;?$/m.exec(rest);
  if (!end) throw new StepFailed(`${path}: ${name} has no end.`);
  return rest.slice(0, end.index + end[0].length);
}

/** The lines of a test with this name, without their common indentation. */
function testNamed(source, name, path) {
  const lines = source.split("\n");
  const from = lines.findIndex((line) => line.includes(`test("${name}"`));
  if (from < 0) throw new StepFailed(`${path} has no test "${name}".`);
  const indent = /^ */.exec(lines[from])[0];
  const to = lines.findIndex((line, index) => index > from && line === `${indent}});`);
  return lines
    .slice(from, to + 1)
    .map((line) => line.slice(indent.length))
    .join("\n");
}

/** A fenced block with the code that a section's name stands for; several declarations are separated by commas. */
export function codeFor(name) {
  const [path, declarations] = name.split("#");
  const source = readFileSync(join(root, "docs", path), "utf8").trimEnd();
  const wanted = path.endsWith(".test.ts")
    ? [testNamed(source, declarations, path)]
    : declarations?.split(",").map((each) => declaration(source, each.trim(), path));
  const language = path.endsWith(".lua") ? "lua" : "ts";
  return `\`\`\`${language}\n${wanted ? wanted.join("\n\n") : source}\n\`\`\``;
}

/** Pages with such sections; that of the benchmarks has sections of another kind. */
export function pagesWithExamples() {
  return readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
    .filter((path) => /^<!-- begin: examples\//m.test(readFileSync(join(root, path), "utf8")));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  try {
    const options = { checkOnly: process.argv.includes("--check"), command: "node scripts/examples.js" };
    refresh(pagesWithExamples(), codeFor, options);
  } catch (error) {
    process.exitCode = explain(error);
  }
