// npm run screenshots: takes the pictures in docs/images from a running Carillon. npm run screenshots -- <name> takes some.
import { join } from "node:path";
import { prepareChromium } from "./chromium.js";
import { buildPages } from "./pages.js";
import { setUp } from "./setup.js";
import { explain, root, runAloud, step } from "./steps.js";

try {
  await setUp({ redis: "always" });
  await buildPages();
  await step("Looking for Chromium", prepareChromium);
  const [only] = process.argv.slice(2);
  process.exitCode = await runAloud(
    process.execPath,
    [join(root, "node_modules/vitest/vitest.mjs"), "run", "--config", "test/browser/screenshots.config.ts"],
    { env: only ? { CARILLON_SCREENSHOTS_ONLY: only } : {} },
  );
} catch (error) {
  process.exitCode = explain(error);
}
