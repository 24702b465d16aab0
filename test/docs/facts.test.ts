import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import type { Io } from "../../src/surfaces/cli/io.ts";
import { program } from "../../src/surfaces/cli/program.ts";
import { catalogue } from "../../src/surfaces/house.ts";
import { allSettings } from "../../src/surfaces/settings.ts";
import { expectNone, filesIn, isTest, read, root } from "../house/repository.ts";
import { type Fragment, pages, spans, typed } from "./handbook.ts";

const OPERATIONS = "docs/operations.md";

const carillon = program({ out: () => {}, err: () => {}, environment: {}, workingDirectory: root } as unknown as Io);

/** What is wrong with a call of the command line, if anything. */
function faultOf(call: string): string | undefined {
  const words = call.split(/\s+/);
  let command: Command = carillon;
  while (words[0] !== undefined && command.commands.length > 0 && /^[a-z][a-z-]*$/.test(words[0])) {
    const next = command.commands.find((each) => each.name() === words[0]);
    if (!next) return `there is no command ${words[0]}`;
    command = next;
    words.shift();
  }
  const flags = words.filter((word) => /^--[a-z]/.test(word) && word !== "--help");
  const unknown = flags.find((flag) => !command.options.some(({ long }) => long === flag));
  return unknown === undefined ? undefined : `${command.name()} has no option ${unknown}`;
}

test("every command of carillon that the handbook names exists, with its options", () => {
  const calls = typed().flatMap(({ page, text }) =>
    [...text.matchAll(/(?:^|[(\s])carillon ((?:(?:-{0,2}[a-z][a-z-]*|<[a-z-]+>|'[^']*')(?=[\s)|]|$) ?)+)/g)].map(
      ([, call]) => ({ page, text: call!.trim() }),
    ),
  );
  expect(calls.length).toBeGreaterThan(30);
  expect(faultOf("jobs run --wacht")).toBe("run has no option --wacht");
  expect(faultOf("job list")).toBe("there is no command job");
  expectNone(
    "Correct these commands:",
    faults(calls, ({ text }) => faultOf(text)),
  );
});

test("every script that the handbook runs with npm or node exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const benchmarks = new Set(filesIn("bench").map((file) => file.replace(/^bench\/(.+?)(\/index)?\.ts$/, "$1")));
  expectNone(
    "Correct these:",
    faults(typed(), ({ text }) => {
      const name = /\bnpm (?:run )?([a-z]+)/.exec(text)?.[1];
      if (name !== undefined && !["install", "ci", "audit"].includes(name) && !(name in scripts))
        return `no script ${name}`;
      const file = /\bnode (scripts\/\S+\.js)/.exec(text)?.[1];
      if (file !== undefined && !existsSync(join(root, file))) return `no file ${file}`;
      const bench = /\bnpm run bench -- ([a-z-]+)/.exec(text)?.[1];
      return bench !== undefined && !benchmarks.has(bench) ? `no benchmark ${bench}` : undefined;
    }),
  );
});

test("every variable that the handbook names is a declared setting", () => {
  const known = new Set(allSettings().map(({ env }) => env));
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/\b(CARILLON_[A-Z0-9_]+|REDIS_URL|DATABASE_URL)\b/g)].map(([text]) => ({ page, text })),
  );
  expect(named.length).toBeGreaterThan(20);
  expectNone(
    "Correct the name, or declare the setting:",
    faults(named, ({ text }) => (known.has(text) ? undefined : "not declared")),
  );
});

test("every route that the handbook names exists", () => {
  const known = new Set(domains.flatMap(({ routes = [] }) => routes.map(({ method, path }) => `${method} ${path}`)));
  const named = spans().flatMap(({ page, text }) => {
    const [, methods, path] = /^((?:GET|POST|PUT|PATCH|DELETE)) (\/api\/1\/[^?\s]+)/.exec(text) ?? [];
    return methods === undefined ? [] : [{ page, text: `${methods} ${path}` }];
  });
  expect(named.length).toBeGreaterThan(20);
  expectNone(
    "Correct these:",
    faults(named, ({ text }) => (known.has(text) ? undefined : "no such route")),
  );
});

test("every file that the handbook names exists", () => {
  expectNone(
    "Correct the path:",
    faults(spans(), ({ text }) => {
      const path = /^((?:src|test|docs|scripts|bin|bench)\/[\w./-]*)$/.exec(text)?.[1];
      return path === undefined || existsSync(join(root, path)) ? undefined : "no such file";
    }),
  );
});

/** `${name}:skipped` and `{runner}:skipped` alike become `*:skipped`. */
const shapeOf = (identifier: string) => identifier.replace(/\$?\{[^}]*\}/g, "*");

function raisedWarnings(): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of filesIn("src").filter((each) => each.endsWith(".ts") && !isTest(each)))
    for (const [, call] of read(file).matchAll(/\balerts\s*\.warning\(\s*(?=([\s\S]{0,120}))/g)) {
      const texts = [...(/^(?:\w+ \? (["`])([^"`]+)\1 : )?(["`])([^"`]+)\3/.exec(call!) ?? [])];
      for (const identifier of [texts[2], texts[4]]) if (identifier) found.set(shapeOf(identifier), file);
    }
  for (const [, identifier] of read("src/mechanisms/lock/locks.ts").matchAll(/identifier: "([^"]+)"/g))
    found.set(identifier!, "src/mechanisms/lock/locks.ts");
  return found;
}

test("every warning that src raises is explained in docs/operations.md, and no other", () => {
  const explained = new Set(
    [...read(OPERATIONS).matchAll(/^\| `([^`]*:[^`]*)` \| .+ \| .+ \|$/gm)].map(([, identifier]) =>
      shapeOf(identifier!),
    ),
  );
  const raised = raisedWarnings();
  expect(raised.size).toBeGreaterThan(40);
  expectNone(
    `Say in ${OPERATIONS} what these mean and what to do:`,
    [...raised]
      .filter(([identifier]) => !explained.has(identifier))
      .map(([identifier, file]) => `${identifier} of ${file}`),
  );
  expectNone(
    `Remove these from ${OPERATIONS}: nothing raises them:`,
    [...explained].filter((identifier) => !raised.has(identifier)),
  );
});

test("every key that the handbook names is declared", () => {
  const declared = catalogue();
  const patterns = new Set(declared.entries.map(({ pattern }) => pattern));
  const prefixes = new Set(declared.entries.map(({ pattern }) => pattern.split(":")[0]!));
  const warnings = new Set(raisedWarnings().keys());
  const named = spans().filter(
    ({ text }) => /^[a-z_]+(:[a-z_{}0-9]+)+$/.test(text) && prefixes.has(text.split(":")[0]!),
  );
  expect(named.length).toBeGreaterThan(20);
  expectNone(
    "Correct the key, or declare it:",
    faults(named, ({ text }) =>
      patterns.has(text) || warnings.has(shapeOf(text)) || declared.match(text) ? undefined : "not declared",
    ),
  );
});

test("every mechanism has a section in docs/mechanisms.md", () => {
  const words = (text: string) => text.toLowerCase().replace(/[^a-z]+/g, " ");
  const headings = [...read("docs/mechanisms.md").matchAll(/^## (.+)$/gm)].map(([, heading]) => words(heading!));
  const folders = new Set(filesIn("src/mechanisms").map((file) => file.split("/")[2]!));
  expectNone(
    "Say what it is for, what it promises, and show its use:",
    [...folders].filter((folder) => !headings.some((heading) => heading.includes(words(folder)))),
  );
});

test("every room and every floor has its place in the handbook", () => {
  const all = pages.map((page) => read(page)).join("\n");
  const floors = new Set(
    filesIn("src")
      .filter((file) => file.split("/").length > 2)
      .map((file) => `src/${file.split("/")[1]}/`),
  );
  expectNone(
    "Name it in docs/architecture.md:",
    [...floors].filter((floor) => !read("docs/architecture.md").includes(`\`${floor}\``)),
  );
  const routes = domains.flatMap(({ name, routes = [] }) => routes.map(({ path }) => ({ name, path })));
  const silent = domains.filter(({ name }) => {
    const own = routes.filter((route) => route.name === name);
    return own.length > 0 && !own.some(({ path }) => all.includes(path));
  });
  expectNone(
    "Describe these rooms on a page of the handbook:",
    silent.map(({ name }) => name),
  );
});

test("every package of package.json and of the benchmarks is explained", () => {
  const page = read("docs/dependencies.md");
  const packages = ["package.json", "bench/package.json"].flatMap((file) => {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(read(file)) as Record<
      string,
      Record<string, string>
    >;
    return [...Object.keys(dependencies), ...Object.keys(devDependencies)];
  });
  expectNone(
    "Say in docs/dependencies.md what it is for, why this one, what it replaces:",
    packages.filter((name) => !page.includes(`| \`${name}\` |`)),
  );
});

test("every proof in docs/guarantees.md is a test that exists", () => {
  const page = read("docs/guarantees.md");
  const rows = page.split("\n").filter((line) => line.startsWith("| ") && !/^\| (what|---) /.test(line));
  const proofOf = /`((?:src|test)\/[^`]+\.test\.ts)`: "([^"]+)"/g;
  expect(rows.length).toBeGreaterThan(40);
  expectNone(
    "Name the test that proves it:",
    rows.filter((row) => row.match(proofOf) === null),
  );
  const missing = [...page.matchAll(proofOf)].flatMap(([, file, title]) => {
    if (!existsSync(join(root, file!))) return [`${file} does not exist`];
    return read(file!).includes(`"${title}"`) ? [] : [`${file} has no test "${title}"`];
  });
  expectNone("Name tests that exist:", missing);
});

test("the glossary explains each word once, in alphabetical order", () => {
  const words = [...read("docs/glossary.md").matchAll(/^\| ([a-z][a-z -]+) \| \S/gm)].map(([, word]) => word!);
  const own = words.filter((word) => word !== "word");
  expect(own.length).toBeGreaterThan(50);
  expect(own).toEqual([...new Set(own)].sort((one, other) => one.localeCompare(other, "en")));
});

function faults(fragments: readonly Fragment[], look: (fragment: Fragment) => string | undefined): string[] {
  return fragments.flatMap((fragment) => {
    const fault = look(fragment);
    return fault === undefined ? [] : [`${fragment.page}: ${fragment.text}: ${fault}`];
  });
}
