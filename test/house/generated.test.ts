import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import { planOf } from "../../src/kernel/keyspace/index.ts";
import { clientSchema } from "../../src/surfaces/cli/reference-client.ts";
import { references } from "../../src/surfaces/cli/references.ts";
import { catalogue } from "../../src/surfaces/house.ts";
import { allSettings } from "../../src/surfaces/settings.ts";
import { expectNone, filesIn, isTest, read, readIfThere, root } from "./repository.ts";

test("the pages of the handbook that come from declarations are up to date", () => {
  expect(references().map(({ path }) => path)).toEqual(["docs/keys.md", "docs/configuration.md", "docs/errors.md"]);
  expectNone("Run `npm run docs` and commit what it writes:", references().flatMap(staleness));
});

test("the types of the client are those of the routes", async () => {
  expectNone("Run `npm run docs` and commit what it writes:", staleness(await clientSchema()));
});

/** Where a generated file is not what it should be, if anywhere. */
function staleness({ path, text }: { readonly path: string; readonly text: string }): string[] {
  const present = readIfThere(path);
  if (present === text) return [];
  if (present === undefined) return [`${path} is missing`];
  const [wanted, found] = [text.split("\n"), present.split("\n")];
  const at = wanted.findIndex((line, index) => line !== found[index]);
  return [`${path}:${at + 1} should say: ${wanted[at] ?? "(nothing)"}`];
}

test("docs/errors.md has every error that src declares", () => {
  const page = references().find(({ path }) => path === "docs/errors.md")?.text ?? "";
  const faults = filesIn("src")
    .filter((file) => file.endsWith(".ts") && !isTest(file))
    .flatMap((file) =>
      errorCodesOf(file).flatMap((code) => (page.includes(`| \`${code}\` |`) ? [] : [`${code} of ${file}`])),
    );
  expectNone("Give these to their domain as errors, or to a section in src/surfaces/cli/references.ts:", faults);
});

test("every error code is declared once", () => {
  const places = new Map<string, string[]>();
  for (const file of filesIn("src").filter((each) => each.endsWith(".ts") && !isTest(each)))
    for (const code of errorCodesOf(file)) places.set(code, [...(places.get(code) ?? []), file]);
  const faults = [...places].flatMap(([code, files]) => (files.length > 1 ? [`${code}: ${files.join(", ")}`] : []));
  expectNone("Programs decide on the code, so it means one thing: rename one, or share the declaration:", faults);
});

/** The codes that a file declares with `defineErrors({ … })`. */
function errorCodesOf(file: string): string[] {
  return [...read(file).matchAll(/\bdefineErrors\(\{\n([\s\S]*?)\n\s*\}\)/g)].flatMap(([, block]) => {
    const indent = /^ */.exec(block!)![0].length;
    return [...block!.matchAll(new RegExp(`^ {${indent}}([a-z0-9_]+): `, "gm"))].map(([, code]) => code!);
  });
}

test("every family of keys that src declares belongs to a domain of the floor plan", async () => {
  const known = new Set(catalogue().entries.map(({ kind, pattern }) => `${kind} ${pattern}`));
  const files = filesIn("src").filter(
    (file) => !isTest(file) && /\/keys(-[a-z-]+)?\.ts$/.test(file) && /\bfamily\(/.test(read(file)),
  );
  const faults = await Promise.all(
    files.map(async (file) => {
      const exported = Object.values((await import(pathToFileURL(join(root, file)).href)) as Record<string, unknown>);
      const keys = exported.flatMap((value) => (isFamily(value) ? planOf(value).keys : []));
      return keys.flatMap(({ kind, pattern }) => (known.has(`${kind} ${pattern}`) ? [] : [`${pattern} of ${file}`]));
    }),
  );
  expectNone("Give the family to a domain as keys, or the audit takes its keys for foreign ones:", faults.flat());
});

function isFamily(value: unknown): value is object {
  try {
    return typeof value === "object" && value !== null && planOf(value) !== undefined;
  } catch {
    return false;
  }
}

test("every key is explained in a sentence", () => {
  const faults = catalogue().entries.flatMap(({ pattern, doc }) =>
    doc.trim().split(/\s+/).length >= 3 ? [] : [`${pattern}: ${doc}`],
  );
  expectNone("Say in doc what the key is for, in words an operator understands:", faults);
});

test("every setting has a name and an environment name of its own", () => {
  const faults = (["name", "env"] as const).flatMap((what) => {
    const all = allSettings().map((setting) => setting[what]);
    return all.filter((name, index) => all.indexOf(name) !== index).map((name) => `${what} ${name}`);
  });
  expectNone("Rename one of each pair:", faults);
});

test("every setting is documented in a sentence and belongs to docs/configuration.md", () => {
  const page = references().find(({ path }) => path === "docs/configuration.md")?.text ?? "";
  const faults = allSettings().flatMap(({ env, doc }) =>
    doc.trim().length > 10 && page.includes(`\`${env}\``) ? [] : [env],
  );
  expectNone("Say what these settings do:", faults);
});

test("every invariant and every runner has a name of its own", () => {
  const names = domains.flatMap(({ invariants = [], runners = [] }) =>
    [...invariants, ...runners].map(({ name }) => name),
  );
  expectNone(
    "Rename one of each pair:",
    names.filter((name, index) => names.indexOf(name) !== index),
  );
});

test("no script, route or page reads a setting past its declaration", () => {
  const faults = filesIn("src")
    .filter((file) => file.endsWith(".ts") && !isTest(file))
    .filter((file) => /\bprocess\.env\.(?!PATH\b)\w+/.test(read(file)));
  expectNone("Declare a setting and read it with ctx.config.get():", faults);
});
