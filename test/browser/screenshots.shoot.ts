import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, test } from "vitest";
import { livingHouse } from "./living-house.ts";
import { openStage, type Stage, type VisitOptions } from "./stage.ts";

/** The pictures of the handbook: a name, an address, and how it is looked at. */
const SHOTS: readonly (VisitOptions & { readonly name: string; readonly path: string; readonly full?: boolean })[] = [
  { name: "overview", path: "/", full: true },
  { name: "overview-dark", path: "/", colorScheme: "dark" },
  { name: "overview-phone", path: "/", width: 390, height: 844 },
  { name: "jobs", path: "/jobs?tab=recurring" },
  { name: "jobs-failed", path: "/jobs?tab=failed" },
  { name: "email", path: "/email" },
  { name: "templates", path: "/templates?template=eventRegistration" },
];

const folder = process.env.CARILLON_SCREENSHOTS ?? fileURLToPath(new URL("../../docs/images", import.meta.url));
const only = process.env.CARILLON_SCREENSHOTS_ONLY;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
  await livingHouse(stage.house);
  mkdirSync(folder, { recursive: true });
}, 180_000);
afterAll(() => stage?.close());

test.each(SHOTS.filter(({ name }) => !only || name.startsWith(only)))(
  "$name",
  async ({ name, path, full = false, ...how }) => {
    const { page, open, context } = await stage.visit(how);
    await open(path);
    // Charts are drawn a moment after their numbers are there.
    await page.waitForLoadState("networkidle");
    await page.screenshot({ path: `${folder}/${name}.png`, fullPage: full, animations: "disabled" });
    await context.close();
  },
);
