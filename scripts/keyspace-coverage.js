// Which declared key patterns no test wrote or read: what the harness saw during the run, against the built declarations.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, StepFailed } from "./steps.js";

/** Where the whole list is left for whoever wants to read it. */
export const REPORT = join(root, ".carillon", "keyspace-coverage.json");

/** The lines `["key" | "channel", name, "written" | "read"]` of every test process. */
export function readNames(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".names"))
    .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** Each declared pattern with one name of it that was written and one that was read, or null. */
export function coverage(catalogue, names) {
  const seen = { written: new Map(), read: new Map() };
  for (const [kind, name, mode] of names) {
    const match = kind === "channel" ? catalogue.matchChannel(name) : catalogue.match(name);
    if (match && !seen[mode].has(match.entry)) seen[mode].set(match.entry, name);
  }
  const patterns = catalogue.entries.map((entry) => ({
    domain: entry.domain,
    kind: entry.kind,
    pattern: entry.pattern,
    written: seen.written.get(entry) ?? null,
    read: seen.read.get(entry) ?? null,
  }));
  const count = (mode) => patterns.filter((each) => each[mode] !== null).length;
  const [written, read] = [count("written"), count("read")];
  return { summary: `${patterns.length} patterns: written ${written}, read ${read}`, patterns };
}

/** Answers the summary; fails with the patterns that no test wrote or read. */
export async function checkCoverage(folder) {
  const [{ Catalogue }, { domains }] = await Promise.all([
    import(new URL("../dist/kernel/keyspace/index.js", import.meta.url).href),
    import(new URL("../dist/domains.js", import.meta.url).href),
  ]);
  const report = coverage(new Catalogue(domains), readNames(folder));
  mkdirSync(join(root, ".carillon"), { recursive: true });
  writeFileSync(REPORT, `${JSON.stringify(report, null, 2)}\n`);
  const missing = report.patterns.flatMap(({ domain, kind, pattern, written, read }) => {
    const never = [...(written === null ? ["written"] : []), ...(read === null ? ["read"] : [])];
    return never.length === 0 ? [] : [`${domain}: ${kind} ${pattern} is never ${never.join(" or ")}`];
  });
  if (missing.length > 0) throw new StepFailed(report.summary, { output: missing.join("\n") });
  return report.summary;
}
