// Finds a Chromium on this machine for the tests in a browser, or installs one with the system's package manager.
import { findOnPath, install } from "./redis.js";
import { StepFailed } from "./steps.js";

const BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const WAYS_OUT = `There are two ways out:
  1. install Chromium yourself, so that chromium is on PATH, and start again; or
  2. say where one is: CHROMIUM_PATH=/path/to/chromium npm test`;

/** The path of the browser. */
export async function prepareChromium() {
  const found = process.env.CHROMIUM_PATH || findOnPath(BROWSERS);
  if (found) return found;
  await install({ what: "chromium", packagesOf: () => ["chromium", "chromium-browser"], waysOut: WAYS_OUT });
  const installed = findOnPath(BROWSERS);
  if (!installed) throw new StepFailed(`Chromium was installed, but it is not on PATH.\n${WAYS_OUT}`);
  return installed;
}
