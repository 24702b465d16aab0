// Which declared key patterns no test has used: what the harness wrote down during the run, against the built declarations.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, StepFailed } from "./steps.js";

/** Where the whole list is left for whoever wants to read it. */
export const REPORT = join(root, ".carillon", "keyspace-coverage.json");

/** The lines `["key" | "channel", name]` of every test process. */
export function readNames(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".names"))
    .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/**
 * Each declared pattern with one name that was used, or null. A script may be given a channel among its keys, so a
 * channel counts as used under either kind of name.
 */
export function coverage(catalogue, names) {
  const used = new Map();
  for (const [kind, name] of names) {
    const found = [catalogue.matchChannel(name), kind === "key" ? catalogue.match(name) : undefined];
    for (const match of found) if (match && !used.has(match.entry)) used.set(match.entry, name);
  }
  return catalogue.entries.map((entry) => ({
    domain: entry.domain,
    kind: entry.kind,
    pattern: entry.pattern,
    used: used.get(entry) ?? null,
  }));
}

export async function checkCoverage(folder) {
  const [{ Catalogue }, { domains }] = await Promise.all([
    import(new URL("../dist/kernel/keyspace/index.js", import.meta.url).href),
    import(new URL("../dist/domains.js", import.meta.url).href),
  ]);
  const rows = coverage(new Catalogue(domains), readNames(folder));
  mkdirSync(join(root, ".carillon"), { recursive: true });
  writeFileSync(REPORT, `${JSON.stringify(rows, null, 2)}\n`);
  const unused = rows.filter(({ used }) => used === null);
  if (unused.length > 0)
    throw new StepFailed(`${unused.length} of ${rows.length} declared patterns are used by no test`, {
      output: unused.map(({ domain, kind, pattern }) => `${domain}: ${kind} ${pattern}`).join("\n"),
    });
}
