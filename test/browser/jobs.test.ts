import { afterAll, beforeAll, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { listLocks } from "../../src/mechanisms/lock/index.ts";
import { eventually } from "../harness/facts.ts";
import { livingHouse } from "./living-house.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

let stage: Stage;
let desk: Visit;
beforeAll(async () => {
  stage = await openStage();
  await livingHouse(stage.house);
  desk = await stage.visit();
}, 180_000);
afterAll(() => stage?.close());

test("a failed job shows its error as text, and runs again when somebody retries it", async () => {
  const { page, open, takeFaults } = desk;
  await open("/jobs?tab=failed");
  await page.getByText("The bell tower did not answer: <script>alert(1)</script>").first().waitFor();
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByText('"message": "<b>hello</b>"').waitFor();
  await page.getByRole("button", { name: "Retry: runners.example" }).click();
  await page.getByText("No failed jobs").waitFor();
  const { commands } = stage.house.ctx.redis;
  expect(await commands.llen(jobKeys.failed())).toBe(0);
  expect(takeFaults()).toEqual([]);
});

test("a lock is released only after a second word", async () => {
  const { page, open } = desk;
  const { ctx } = stage.house;
  const isHeld = async () => (await listLocks(ctx, ctx.catalogue)).some(({ holder }) => holder === "jobs-elsewhere-1");
  await open("/jobs?tab=locks");
  const release = page.getByRole("button", { name: /^Release: jobs:runner:example:lock/ });
  await release.click();
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await isHeld()).toBe(true);
  await release.click();
  await page.getByRole("button", { name: "Release it" }).click();
  await page.getByText("The lock is free").waitFor();
  await eventually(async () => !(await isHeld()), "a free lock");
});

test("a job that somebody runs by hand tells how it goes until its end", async () => {
  const { page, open, takeFaults } = desk;
  await open("/jobs");
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("combobox", { name: "Job" }).fill("runners.example");
  await page.getByRole("option", { name: "runners.example" }).click();
  await page.getByLabel("Arguments").fill('{"message":"from the dashboard"}');
  await page.getByRole("button", { name: "Run it now" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("succeeded", { exact: false }).first().waitFor();
  expect(takeFaults()).toEqual([]);
});

test("the schedule tells when each job runs next, and runs one at once when asked", async () => {
  const { page, open, takeFaults } = desk;
  await open("/jobs?tab=recurring");
  const row = page.getByRole("row").filter({ hasText: "Logs a message" });
  await row.getByText("every minute").waitFor();
  await row.getByText(/^in \d+ s$|^now$/).waitFor();
  await row.getByRole("button", { name: "Run now: runners.example" }).click();
  await page.getByText(/It runs next|It was waiting to run already/).waitFor();
  expect(takeFaults()).toEqual([]);
});
