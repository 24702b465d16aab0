// Counts what a test run's report says, and what it would rather not say.

import { relative } from "node:path";

/** `report` is vitest's JSON report, undefined when the run died before writing it; `exitCode` is vitest's. */
export function countTests(report, exitCode) {
  if (!report) return { passed: 0, failed: 1, remarks: ["The test run ended without a report."] };
  const remarks = [];
  let passed = 0;
  let failed = 0;
  for (const file of report.testResults ?? []) {
    const states = (file.assertionResults ?? []).map((test) => test.status);
    passed += states.filter((state) => state === "passed").length;
    const failures = states.filter((state) => state === "failed").length;
    failed += failures;
    for (const test of file.assertionResults ?? [])
      if (test.status === "failed") remarks.push(`✗ ${shown(file.name)}: ${test.fullName}`);
    if (file.status === "failed" && failures === 0) {
      failed++;
      remarks.push(`✗ ${shown(file.name)}: ${file.message || "the file could not be run"}`);
    }
  }
  if (passed + failed === 0) {
    failed++;
    remarks.push("No test was run.");
  } else if (exitCode !== 0 && failed === 0) {
    failed++;
    remarks.push("All tests passed, but the run reported an error outside of them: see above.");
  }
  return { passed, failed, remarks };
}

/** The path as people type it: from the folder they are in. */
function shown(path) {
  return path.startsWith("/") ? relative(process.cwd(), path) : path;
}
