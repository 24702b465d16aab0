// npm test: makes this clone ready, then runs the checks and all tests. The last line is always `N passed, N failed`.
// npm test -- <filter> runs only the test files whose path contains the filter, without the checks.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepareChromium } from "./chromium.js";
import { checkCoverage } from "./keyspace-coverage.js";
import { buildPages } from "./pages.js";
import { compile, installPackages, setUp } from "./setup.js";
import { explain, root, run, runAloud, say, step } from "./steps.js";
import { countTests } from "./tally.js";

const filter = process.argv.slice(2);
const tally = { passed: 0, failed: 0 };

async function check(name, work) {
  try {
    await step(name, async () => void (await work()));
    tally.passed++;
  } catch (error) {
    explain(error);
    tally.failed++;
  }
}

async function runTests(folder) {
  const report = join(folder, "results.json");
  const asked = filter.length === 0 ? { CARILLON_NAMES_SEEN: folder } : {};
  const plain = process.env.CI ? { NO_COLOR: "1", FORCE_COLOR: undefined } : {};
  const code = await runAloud(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      ...["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
      ...filter,
    ],
    { env: { ...plain, ...asked } },
  );
  let results;
  try {
    results = JSON.parse(readFileSync(report, "utf8"));
  } catch {}
  return countTests(results, code);
}

function node(script, ...args) {
  return run(process.execPath, [join(root, script), ...args]);
}

const folder = mkdtempSync(join(tmpdir(), "carillon-results-"));
try {
  await setUp({ redis: "always" });
  if (filter.length === 0) {
    // The benchmarks are type-checked too, and their peers have types of their own.
    await installPackages(join(root, "bench"), "the benchmarks' packages");
    await installPackages(join(root, "dashboard"), "the dashboard's packages");
    await check("Types", () => node("node_modules/typescript/bin/tsc", "-p", "."));
    await check("Types of the dashboard", () => node("node_modules/typescript/bin/tsc", "-p", "dashboard"));
    await check("Lint and format", () => node("node_modules/@biomejs/biome/bin/biome", "check", "."));
  }
  await check("Build", compile);
  await check("Build of the dashboard", buildPages);
  if (filter.length === 0) await step("Looking for Chromium", prepareChromium);
  const { passed, failed, remarks } = await runTests(folder);
  tally.passed += passed;
  tally.failed += failed;
  for (const remark of remarks) say(remark);
  if (filter.length === 0)
    await check("Every declared key pattern is written and read by a test", async () =>
      say(await checkCoverage(folder)),
    );
} catch (error) {
  explain(error);
  tally.failed++;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = tally.failed === 0 ? 0 : 1;
say();
say(`${tally.passed} passed, ${tally.failed} failed`);
