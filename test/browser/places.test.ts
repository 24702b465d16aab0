import { afterAll, beforeAll, expect, test } from "vitest";
import { barriers, scrollsSideways } from "./barriers.ts";
import { channelScene } from "./channel-scene.ts";
import { livingHouse } from "./living-house.ts";
import { PLACES } from "./places.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

let stage: Stage;
/** One visit each for all pages, so that what they share is loaded once. */
let desk: Visit;
let phone: Visit;
beforeAll(async () => {
  stage = await openStage();
  await livingHouse(stage.house);
  await channelScene(stage.house);
  desk = await stage.visit({ width: 1280 });
  phone = await stage.visit({ width: 390, height: 844, colorScheme: "dark" });
}, 180_000);
afterAll(() => stage?.close());

test.each(PLACES)(
  "the page $path has no faults, barriers or sideways scroll on desks and phones",
  async (place) => {
    const lookAt = async ({ page, open, takeFaults }: Visit) => {
      await open(place.path);
      await page.getByRole("heading", { level: 1, name: place.title, exact: true }).waitFor();
      expect(await page.title()).toBe(`${place.title} · Carillon`);
      expect(await scrollsSideways(page)).toBe(false);
      expect(await barriers(page)).toEqual([]);
      expect(takeFaults()).toEqual([]);
    };
    await Promise.all([desk, phone].map(lookAt));
  },
  90_000,
);

test("the first page needs less than 300 KB of script, charts included, also where nothing better than gzip is understood", async () => {
  const { page, open, context } = await stage.visit();
  await open("/");
  await page.locator(".recharts-surface").first().waitFor();
  const scripts = await page.evaluate<string[]>(
    "performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.endsWith('.js'))",
  );
  const weights = await Promise.all(
    scripts.map(async (script) => {
      const { headers } = await fetch(script, { headers: { "accept-encoding": "gzip" } });
      expect(headers.get("content-encoding")).toBe("gzip");
      return Number(headers.get("content-length"));
    }),
  );
  const bytes = weights.reduce((sum, weight) => sum + weight, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThan(300_000);
  await context.close();
});

test("days that may still change are lighter and noted, and only they are counted anew; whoever has read the welcome does not see it again", async () => {
  const { page, open, context, takeFaults } = await stage.visit();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(...(/\/stats\/push_tickets\/(\w+)/.exec(request.url())?.slice(1) ?? [])));
  await open("/");
  const welcome = page.getByRole("heading", { name: "Welcome to Carillon" });
  await page.getByRole("button", { name: "Close the welcome" }).click();
  await page.locator(".recharts-reference-dot").first().waitFor();
  const shades = await page
    .locator(".recharts-area-area")
    .evaluateAll((paths) => paths.map((path) => path.getAttribute("fill-opacity")));
  expect(new Set(shades)).toEqual(new Set(["1", "0.45"]));
  await page.getByRole("button", { name: /^Messages over 90 days: show the numbers/ }).click();
  const days = page.getByRole("region", { name: "Messages over 90 days, as a table" }).getByRole("row");
  expect(await days.nth(1).textContent()).toMatch(/^\d{4}-\d\d-\d\d, so far/);
  // Receipts of yesterday's messages still come in.
  expect(await days.nth(2).textContent()).toMatch(/^\d{4}-\d\d-\d\d, not final/);
  expect(await days.nth(3).textContent()).toMatch(/^\d{4}-\d\d-\d\d[^,]/);
  await open("/");
  await page.getByRole("heading", { name: "Just now" }).waitFor();
  expect([...new Set(asked)].sort()).toEqual(["daily", "partial"]);
  expect(await welcome.count()).toBe(0);
  expect(takeFaults()).toEqual([]);
  await context.close();
});

test("the menu of a phone is a drawer that keyboard and finger open, and that closes when one goes somewhere", async () => {
  const { page, open, context, takeFaults } = await stage.visit({ width: 390, height: 844 });
  await open("/");
  const jobs = page.getByRole("link", { name: "Jobs", exact: true });
  expect(await jobs.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Menu" }).press("Enter");
  await jobs.click();
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
  await jobs.waitFor({ state: "hidden" });
  expect(takeFaults()).toEqual([]);
  await context.close();
});

test("whoever chooses dark colours keeps them after a reload, without a flash of light", async () => {
  const { page, open, context } = await stage.visit({ colorScheme: "light" });
  await open("/");
  await page.getByRole("button", { name: "Dark colours" }).click();
  const scheme = () => page.evaluate<string>("document.documentElement.getAttribute('data-mantine-color-scheme')");
  expect(await scheme()).toBe("dark");
  await page.reload({ waitUntil: "commit" });
  await page.locator("body").waitFor({ state: "attached" });
  expect(await scheme()).toBe("dark");
  await context.close();
});
