import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const MOTION_ENDED = `Promise.allSettled(
  document.getAnimations()
    .filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    .map(({ finished }) => finished),
).then(() => undefined)`;

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What keeps people out, as an automatic check sees it: serious and critical findings only. */
export async function barriers(page: Page): Promise<string[]> {
  // What is still fading in has less contrast than it will have.
  await page.evaluate(MOTION_ENDED);
  // Evaluated by the debugger, so that the policy of the page need not allow it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate<{ violations: Finding[] }>("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

// What runs in the page is text: the sources of Node know no document.
export const scrollsSideways = (page: Page) =>
  page.evaluate<boolean>("document.documentElement.scrollWidth > document.documentElement.clientWidth");
