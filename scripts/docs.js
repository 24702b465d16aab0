// npm run docs: writes what docs/ takes from elsewhere: pages from declarations, code from examples, tables from benchmarks;
// and the types of the client, from the description of the routes.
// --check only compares, and fails when something is stale.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeFor, pagesWithExamples } from "./examples.js";
import { PAGE, performanceTables } from "./performance.js";
import { refresh } from "./sections.js";
import { build, checkNode, installPackages } from "./setup.js";
import { explain, root, StepFailed, say } from "./steps.js";

const checkOnly = process.argv.includes("--check");

function present(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

try {
  checkNode();
  await installPackages();
  await build();
  const { references } = await import("../dist/surfaces/cli/references.js");
  const { clientSchema } = await import("../dist/surfaces/cli/reference-client.js");
  const stale = [...references(), await clientSchema()].filter(({ path, text }) => present(join(root, path)) !== text);
  if (checkOnly && stale.length > 0)
    throw new StepFailed(`Out of date: ${stale.map(({ path }) => path).join(", ")}. Run \`npm run docs\` and commit.`);
  for (const { path, text } of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    say(`✓ ${path}`);
  }
  const options = { checkOnly, command: "npm run docs" };
  refresh(pagesWithExamples(), codeFor, options);
  refresh([PAGE], () => performanceTables(), options);
  if (stale.length === 0) say("✓ the generated pages are up to date");
} catch (error) {
  process.exitCode = explain(error);
}
