import { afterAll, beforeAll, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { barriers } from "./barriers.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

let stage: Stage;
let desk: Visit;
beforeAll(async () => {
  stage = await openStage();
  desk = await stage.visit();
  desk.page.setDefaultTimeout(15_000);
}, 180_000);
afterAll(() => stage?.close());

test("an audit of the keyspace runs while somebody watches, and tells which key nobody declared", async () => {
  const { page, open, takeFaults } = desk;
  const { commands } = stage.house.ctx.redis;
  await commands.set("stranger:<b>1</b>", "x");
  await open("/keyspace");
  await page.getByText("No audit so far", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Audit" }).click();
  await page.getByRole("status", { name: "Progress of the audit" }).waitFor();
  const findings = page.getByRole("table", { name: "Findings" });
  await findings.getByText("stranger:<b>1</b>").waitFor();
  await findings.getByText("unknown key").waitFor();
  await page.getByRole("button", { name: /^jobs \d+ patterns, \d+ keys/ }).click();
  await page.getByRole("table", { name: "Patterns of jobs" }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await commands.del("stranger:<b>1</b>");
  await page.getByRole("button", { name: "Audit" }).click();
  await page.getByText("Everything is as declared").waitFor();
  expect(takeFaults()).toEqual([]);
});

test("a key is found by a word of its meaning, explored, and shown with what it holds now", async () => {
  const { page, open, takeFaults } = desk;
  const { commands } = stage.house.ctx.redis;
  const worker = (await commands.zrange(jobKeys.workers(), 0, "0"))[0]!;
  await open("/keyspace");
  await page.getByRole("searchbox", { name: "Find a pattern" }).fill("who a worker is");
  await page.getByRole("button", { name: "jobs:workers:{worker_uid}" }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByRole("button", { name: `jobs:workers:${worker}` }).click();
  await drawer.getByText("What it holds now").waitFor();
  await drawer.getByRole("region", { name: "JSON" }).getByText('"concurrency"').waitFor();
  expect(await barriers(page)).toEqual([]);
  await drawer.getByRole("button", { name: "Close" }).click();
  await page.getByRole("textbox", { name: "Look into a key" }).fill("jobs:wrokers");
  await page.getByRole("button", { name: "Explore" }).click();
  await drawer.getByText("Nobody declared such a key").waitFor();
  await drawer.getByRole("button", { name: "jobs:workers", exact: true }).click();
  const members = drawer.getByRole("table", { name: "Members with their scores" });
  await members.getByRole("row").filter({ hasText: worker }).getByText("as a moment").waitFor();
  expect(takeFaults()).toEqual([]);
});

test("a secret key is explained by its pattern, and its value stays where it is", async () => {
  const { page, open, takeFaults } = desk;
  const { redis, catalogue } = stage.house.ctx;
  const secret = catalogue.entries
    .filter((entry) => entry.secret && entry.type === "string")
    .map(({ pattern }) => pattern.replaceAll(/\{[^}]*\}/g, "1"))
    .find((name) => catalogue.match(name)?.entry.secret)!;
  await redis.commands.set(secret, "hunter2", "EX", 60);
  await open(`/keyspace?name=${encodeURIComponent(secret)}`);
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Only the pattern is shown, here and everywhere.").waitFor();
  await drawer.getByText("withheld, because its pattern is secret").waitFor();
  expect(await drawer.textContent()).not.toContain("hunter2");
  expect(takeFaults()).toEqual([]);
});

test("settings tell their value and source, and mask what is secret", async () => {
  const { page, open, takeFaults } = desk;
  await open("/settings");
  await page.getByRole("searchbox", { name: "Find a setting" }).fill("CARILLON_DATA_DIR");
  const row = page.getByRole("row").filter({ hasText: "CARILLON_DATA_DIR" });
  await row.getByText("environment", { exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Find a setting" }).fill("no such setting anywhere");
  await page.getByText("No setting fits").waitFor();
  expect(takeFaults()).toEqual([]);
});

test("alerts are counted by what they are about, urgent ones first, each with what the handbook says", async () => {
  const { page, open, takeFaults } = desk;
  const { alerts } = stage.house.ctx;
  for (let n = 1; n <= 3; n++) alerts.warning("worker:buried", `worker ${n} fell silent <script>alert(1)</script>`);
  alerts.warning("redis:policy", "Redis may evict queues", { urgent: true });
  await open("/alerts");
  const row = page.getByRole("row").filter({ hasText: "worker:buried" });
  await row.getByRole("cell", { name: "3", exact: true }).waitFor();
  const order = await page.getByRole("table").getByRole("row").allInnerTexts();
  const placeOf = (identifier: string) => order.findIndex((line) => line.includes(identifier));
  expect(placeOf("redis:policy")).toBeLessThan(placeOf("worker:buried"));
  await row.getByRole("button", { name: "Details" }).click();
  await page.getByText("See why it died: memory, a kill, the machine.").waitFor();
  await page.getByText("worker 1 fell silent <script>alert(1)</script>").waitFor();
  expect(await barriers(page)).toEqual([]);
  expect(takeFaults()).toEqual([]);
});
