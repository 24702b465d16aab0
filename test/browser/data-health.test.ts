import { sql as raw } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import { calendarOf, isoDate, type StatsFamily } from "../../src/mechanisms/dated-counters/index.ts";
import { barriers } from "./barriers.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

const families = domains.flatMap(({ stats = [] }) => stats);
const familyNamed = (name: string) => families.find((family) => family.name === name)!;

let stage: Stage;
let desk: Visit;
let today: number;
beforeAll(async () => {
  stage = await openStage();
  const { ctx } = stage.house;
  today = calendarOf(ctx).unixDate(ctx.clock.now());
  desk = await stage.visit();
  desk.page.setDefaultTimeout(20_000);
}, 180_000);
afterAll(() => stage?.close());

/** As if nothing had been moved since then. */
const startAt = (family: StatsFamily, date: number) => stage.house.ctx.redis.commands.set(family.earliest(), date);
const rowOf = (family: StatsFamily) => desk.page.getByRole("row").filter({ hasText: family.name }).first();

test("a family that is late is seen, rotated after a second word, and told to be in time with what did not agree", async () => {
  const { page, open, takeFaults } = desk;
  const { commands } = stage.house.ctx.redis;
  const polling = familyNamed("sms_polling");
  const late = today - polling.held - 2;
  await startAt(polling, late);
  // Every question ends in one way: two that ended in none do not agree.
  await commands.hset(polling.day(late), "attempted", 2);
  await open("/data-health");
  await rowOf(polling).getByText("2 days late").waitFor();
  expect(await page.getByRole("row").nth(1).textContent()).toContain(polling.name);
  const rotate = page.getByRole("button", { name: "Rotate: Silent texts" });
  await rotate.click();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await commands.get(polling.earliest())).toBe(String(late));
  await rotate.click();
  await page.getByRole("button", { name: "Rotate now" }).click();
  await page
    .getByText(/^3 days were moved; it ended with/)
    .first()
    .waitFor();
  await rowOf(polling).getByText("in time").waitFor();
  await rowOf(polling).getByText(isoDate(late)).waitFor();
  const { rows } = await raw<{ attempted: number }>`
    select attempted from sms_polling_stats order by retrieved_for`.execute(stage.house.ctx.sql.tables());
  expect(rows.map(({ attempted }) => attempted)).toEqual([2, 0, 0]);
  expect(await barriers(page)).toEqual([]);
  expect(takeFaults()).toEqual([]);
});

test("a Redis that forgot where a family is gets its pointer back from SQL when somebody repairs it", async () => {
  const { page, open, takeFaults } = desk;
  const { ctx } = stage.house;
  const stale = familyNamed("touch_stale");
  const last = today - stale.held - 1;
  await raw`insert into touch_stale_stats (retrieved_for, retrieved_at) values (${isoDate(last)}::date, now())`.execute(
    ctx.sql.tables(),
  );
  await open("/data-health");
  await rowOf(stale).getByText("not begun").waitFor();
  await page.getByRole("button", { name: "Repair", exact: true }).click();
  await page.getByRole("button", { name: "Repair it" }).click();
  await page.getByText("1 families go on after their last day in SQL").first().waitFor();
  await rowOf(stale)
    .getByText(isoDate(last + 1))
    .waitFor();
  expect(await ctx.redis.commands.get(stale.earliest())).toBe(String(last + 1));
  expect(takeFaults()).toEqual([]);
});

test("every declared family is listed and leads to its charts, without a page having to know it", async () => {
  const { page, open, takeFaults } = desk;
  await open("/data-health");
  const names = await page.getByRole("table").locator("tbody code").allTextContents();
  expect(names.sort()).toEqual(families.map(({ name }) => name).sort());
  // Declared by a room whose channel has no page.
  const methods = familyNamed("contact_methods");
  await page.getByRole("link", { name: "Contact methods" }).click();
  await page.getByRole("heading", { level: 1, name: "Contact methods" }).waitFor();
  const titles = await page.getByRole("heading", { level: 2 }).allTextContents();
  expect(titles).toEqual(methods.plots.map(({ title }) => title));
  await open("/data-health/nobody:knows");
  await page.getByText("There is no such family").waitFor();
  await page.getByRole("link", { name: "All families" }).click();
  await page.getByRole("heading", { level: 1, name: "Data health" }).waitFor();
  expect(takeFaults()).toEqual([]);
});

test("when the health cannot be told, the page says why and asks again when somebody wants it", async () => {
  const { page, open } = desk;
  const health = "**/api/1/admin/stats/health";
  await page.route(health, (route) => route.fulfill({ status: 403, json: { type: "forbidden", message: "Not now." } }));
  await page.goto(`${stage.url}/admin/data-health`);
  await page.getByRole("alert").getByText("Not now.").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.unroute(health);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("table", { name: "Families of statistics with their health" }).waitFor();
  await open("/data-health");
});
