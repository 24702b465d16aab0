// Sections of the handbook that come from elsewhere stand between two comments:
//   <!-- begin: name -->
//   <!-- end -->
// This file rewrites them. Plain JavaScript without packages, so that it runs in a fresh clone.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, StepFailed, say } from "./steps.js";

const SECTION = /^<!-- begin: (.+?) -->\n[\s\S]*?^<!-- end -->$/gm;

/** The page with every section replaced by what `contentOf` gives for its name. */
export function withSections(page, contentOf) {
  return page.replace(
    SECTION,
    (_section, name) => `<!-- begin: ${name} -->\n\n${contentOf(name).trim()}\n\n<!-- end -->`,
  );
}

/** Writes the pages that differ; with `checkOnly` it only names them and fails. */
export function refresh(pages, contentOf, { checkOnly, command }) {
  const stale = pages.flatMap((path) => {
    const present = readFileSync(join(root, path), "utf8");
    const text = withSections(present, contentOf);
    return text === present ? [] : [{ path, text }];
  });
  if (checkOnly && stale.length > 0)
    throw new StepFailed(`Out of date: ${stale.map(({ path }) => path).join(", ")}. Run \`${command}\` and commit.`);
  for (const { path, text } of stale) {
    writeFileSync(join(root, path), text);
    say(`✓ ${path}`);
  }
  if (stale.length === 0) say("✓ up to date");
}
