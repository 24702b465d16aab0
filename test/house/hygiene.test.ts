import { test } from "vitest";
import {
  code,
  expectNone,
  filesIn,
  filesInRoot,
  importsOf,
  isTest,
  isTypeScript,
  linesWith,
  read,
  readIfThere,
} from "./repository.ts";

const sources = filesIn("src").filter((file) => /\.(ts|tsx|mjs|js)$/.test(file));
const product = sources.filter((file) => !isTest(file));
const pages = filesIn("dashboard/src").filter(isTypeScript);
const tests = filesIn("src", "test").filter((file) => /\.test\.tsx?$/.test(file));
const everything = [
  ...filesInRoot(),
  ...filesIn("src", "test", "bench", "scripts", "bin", "dashboard", "docs", ".github"),
].filter((file) => /\.(ts|tsx|mjs|js|json|md|lua|ya?ml|toml|html|css|sh)$|^\.[a-z]+rc$/.test(file));

/** Who may ask the platform for the time or set a timer, and why. */
const CLOCKS = new Map([
  ["src/kernel/clock.ts", "is the clock"],
  ["dashboard/src/app/clock.ts", "is the clock of the pages"],
  ["src/client/patience.ts", "runs in applications, which have no clock of ours; tests give it a wait of their own"],
  ["src/kernel/redis/managed.ts", "waits for a child process, which knows no virtual time"],
  [
    "src/jobs/heartbeat-thread.mjs",
    "is a thread of its own, so that a busy process still beats; a clock cannot be passed to it",
  ],
]);

test("no explicit any, unless the line above says why", () => {
  const faults = [...sources, ...filesIn("test", "bench", "dashboard")].filter(isTypeScript).flatMap((file) => {
    const lines = read(file).split("\n");
    const place = (found: string) => Number(found.slice(found.lastIndexOf(":") + 1)) - 1;
    return linesWith(file, /\bas any\b|[:<|&,(]\s*any\b(?!\s*[(:=])|\bany\[\]/).filter(
      (found) => !/biome-ignore lint\/suspicious\/noExplicitAny: \S/.test(lines[place(found) - 1] ?? ""),
    );
  });
  expectNone("Use unknown and narrow it, or a type parameter:", faults);
});

test("time and timers come from the clock in the context", () => {
  const faults = [...product, ...pages]
    .filter((file) => !CLOCKS.has(file))
    .flatMap((file) => linesWith(file, /\bDate\.now\(|\bnew Date\(\s*\)|\b(setTimeout|setInterval)\(/));
  expectNone(
    "Use ctx.clock.now(), ctx.clock.sleep() or ctx.clock.every(), so that tests decide when things happen:",
    faults,
  );
});

test("src prints nothing by itself", () => {
  const faults = product.flatMap((file) => linesWith(file, /\bconsole\./));
  expectNone("Use ctx.log, or the print function that a command gets:", faults);
});

test("nothing is left to do later in a comment", () => {
  const words = new RegExp(`\\b(${["TO", "FIX", "XX"].map((word, at) => word + ["DO", "ME", "X"][at]).join("|")})\\b`);
  const faults = everything
    .filter((file) => !file.endsWith("package-lock.json"))
    .flatMap((file) => linesWith(file, words, read(file)));
  expectNone("Do it now, or open an issue and delete the comment:", faults);
});

test("no test is skipped, alone or still to be written", () => {
  const faults = tests.flatMap((file) =>
    linesWith(
      file,
      /\b(test|it|describe|suite|bench)(\.\w+)*\.(skip|only|todo|skipIf|runIf|fails)\b|\b(xit|xtest|xdescribe|fit|fdescribe)\(/,
    ),
  );
  expectNone("Run it, or delete it:", faults);
});

test("no two tests have the same name", () => {
  const places = new Map<string, string[]>();
  for (const file of tests)
    for (const found of read(file).matchAll(
      /^[ \t]*(?:test|it)(?:\.\w+(?:\([^)]*\))?)*\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/gm,
    )) {
      const name = found[1]!.slice(1, -1);
      places.set(name, [...(places.get(name) ?? []), file]);
    }
  const faults = [...places].flatMap(([name, files]) => (files.length > 1 ? [`"${name}": ${files.join(", ")}`] : []));
  expectNone("Say in each name what this test proves and no other does:", faults);
});

test("tests wait for facts, not for time", () => {
  const faults = tests.flatMap((file) => [
    ...linesWith(file, /\b(setTimeout|setInterval)\(/),
    ...importsOf(file).flatMap(({ specifier }) =>
      specifier.startsWith("node:timers") ? [`${file}: ${specifier}`] : [],
    ),
  ]);
  expectNone("Use eventually(fact) and the virtual clock:", faults);
});

test("no file names a package registry or a folder of one machine", () => {
  const registry = /registry\.(npmjs|yarnpkg)\.|npmmirror|artifactory|verdaccio|"resolved": "http/;
  const folder = /(?<![\w.~$}-])\/(home|Users|root|work|workspace|mnt)\/[\w.-]/;
  const faults = everything
    .filter((file) => file !== "test/house/hygiene.test.ts")
    .flatMap((file) => [...linesWith(file, registry, read(file)), ...linesWith(file, folder, read(file))]);
  expectNone("Use relative paths, and let npm find its registry:", faults);
});

const dependenciesOf = (file: string) =>
  (JSON.parse(read(file)) as { dependencies: Readonly<Record<string, string>> }).dependencies;

test("every package that Carillon runs on is explained in docs/dependencies.md", () => {
  const names = ["package.json", "dashboard/package.json"].flatMap((file) => Object.keys(dependenciesOf(file)));
  const explained = readIfThere("docs/dependencies.md") ?? "";
  const faults = names.filter((name) => !explained.includes(`\`${name}\``));
  expectNone(
    "Say in docs/dependencies.md, with its name in backticks, what it is for, why this one, what it replaces:",
    faults,
  );
});

test("every package that src or the dashboard imports is a dependency of its package.json", () => {
  const undeclared = (files: readonly string[], dependencies: Readonly<Record<string, string>>) =>
    files.flatMap((file) =>
      importsOf(file).flatMap(({ specifier, typesOnly }) => {
        if (typesOnly || /^(\.|node:)/.test(specifier)) return [];
        const name = specifier
          .split("/")
          .slice(0, specifier.startsWith("@") ? 2 : 1)
          .join("/");
        return name in dependencies ? [] : [`${file} imports ${specifier}`];
      }),
    );
  const ofPages = { ...dependenciesOf("dashboard/package.json"), carillon: "the client, from src/client" };
  const faults = [...undeclared(product, dependenciesOf("package.json")), ...undeclared(pages, ofPages)];
  expectNone("Add these to dependencies, or do without:", faults);
});

test("keys are spelled in keys.ts only", () => {
  const command =
    /\.commands\s*\.\s*(?!(?:on|once|off|info|config|call|callBuffer|script|client|memory|object|scan|scanBuffer)\b)\w+\(\s*["`]\S/;
  const scriptCall = /\.run\(\s*\w+,\s*\[\s*["`]\S/;
  const faults = product
    .filter((file) => !/\/keys(-[a-z-]+)?\.ts$|^src\/kernel\//.test(file))
    .flatMap((file) => [...linesWith(file, command, read(file)), ...linesWith(file, scriptCall, read(file))]);
  expectNone("Declare the key in keys.ts and call it by its declaration:", faults);
});

test("the check of code does not see comments, strings and patterns", () => {
  const own = "test/house/hygiene.test.ts";
  // console.log( and setTimeout( stand in this comment and "setTimeout(" in this string, but not in the code.
  const seen = [...linesWith(own, /console\.log\(/), ...linesWith(own, /\bsetTimeout\(/)];
  expectNone("strip() in repository.ts lets talk through:", seen);
  if (!code(own).includes("everything")) throw new Error("strip() in repository.ts takes code away");
});
