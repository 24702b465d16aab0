// npm run docs: writes the pages of docs/ that come from declarations. --check only compares, and fails when one is stale.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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
  const stale = references().filter(({ path, text }) => present(join(root, path)) !== text);
  if (checkOnly && stale.length > 0)
    throw new StepFailed(`Out of date: ${stale.map(({ path }) => path).join(", ")}. Run \`npm run docs\` and commit.`);
  for (const { path, text } of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    say(`✓ ${path}`);
  }
  if (stale.length === 0) say("✓ the generated pages are up to date");
} catch (error) {
  process.exitCode = explain(error);
}
