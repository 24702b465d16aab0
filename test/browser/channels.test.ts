import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quarantinedQueues } from "../../src/mechanisms/quarantine/index.ts";
import { enqueueSms } from "../../src/messaging/sms/service.ts";
import { eventually } from "../harness/facts.ts";
import { barriers } from "./barriers.ts";
import { channelScene, SCRIPT } from "./channel-scene.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

const SOON = { timeout: 30_000 };

let stage: Stage;
let desk: Visit;
beforeAll(async () => {
  // One more try, at once: a text that fails twice is given up.
  stage = await openStage({ CARILLON_SMS_RETRY_DELAYS: "0" });
  await channelScene(stage.house);
  desk = await stage.visit();
}, 180_000);
afterAll(() => stage?.close());

const turnKnobs = (knobs: object) =>
  fetch(`${stage.url}/api/1/sandbox/knobs`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(knobs),
  });

async function arrivedAt(to: string): Promise<number> {
  const answer = await fetch(`${stage.url}/api/1/sandbox/messages?to=${encodeURIComponent(to)}`);
  return ((await answer.json()) as { items: unknown[] }).items.length;
}

test("a test mail is watched from the queue to the mailbox", async () => {
  const { page, open, takeFaults } = desk;
  await open("/email");
  await page.getByRole("button", { name: "Send a test" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Email address" }).fill("curious@example.com");
  await eventually(
    async () => (await dialog.getByLabel("Parameters").inputValue()).includes("message"),
    "the example's parameters",
  );
  await dialog.getByRole("button", { name: "Send it" }).click();
  for (const step of ["queued", "accepted", "delivered"])
    await dialog.locator(".mantine-Timeline-item").getByText(step, { exact: true }).waitFor(SOON);
  await dialog.getByText("It has ended").waitFor(SOON);
  expect(await arrivedAt("curious@example.com")).toBe(1);
  expect(takeFaults()).toEqual([]);
});

test("an entry that nobody could read is corrected and put back, and another is discarded after a second word", async () => {
  const { page, open, takeFaults } = desk;
  const { ctx } = stage.house;
  const now = ctx.clock.now();
  const job = { name: "runners.sms.default_failure", kwargs: {} };
  const entry = {
    aud: "send",
    uid: "crl_sms_corrected",
    initially_queued_at: now,
    retry: 0,
    last_queued_at: now,
    phone_number: "+12025550177",
    body: "Mended by hand",
    failure_job: job,
    success_job: { ...job, name: "runners.sms.default_success" },
  };
  const { commands, topology } = ctx.redis;
  const queue = topology.key("sms:to_send" as never);
  await commands.rpush(queue, JSON.stringify({ ...entry, phone_number: `no number: ${SCRIPT}` }), "{");
  await ctx.jobs.enqueueNamed("runners.sms.send", {});
  await open("/sms?tab=quarantine");
  const putBack = page.getByRole("button", { name: /^Put back: / });
  await eventually(async () => (await putBack.count()) === 2, "both entries set aside");
  await page.getByText("Set aside from sms:to_send").waitFor();

  // The newest stands first: the one that is no JSON at all.
  await page
    .getByRole("button", { name: /^Discard: / })
    .first()
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await page.getByText("Discarded for good").waitFor();
  await eventually(async () => (await putBack.count()) === 1, "one entry less");

  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Corrected entry").fill(JSON.stringify({ ...entry, phone_number: "nobody" }));
  await page.getByRole("button", { name: "Put back corrected" }).click();
  await page.getByText("That did not work").waitFor();
  await page.getByLabel("Corrected entry").fill(JSON.stringify(entry));
  await page.getByRole("button", { name: "Put back corrected" }).click();
  await page.getByText("It is in its queue again").waitFor();
  await page.getByText("Nothing is set aside").waitFor();
  expect((await quarantinedQueues(ctx)).some((each) => each.queue === "sms:to_send")).toBe(false);
  await ctx.jobs.enqueueNamed("runners.sms.send", {});
  await eventually(async () => (await arrivedAt("+12025550177")) === 1, "the mended text on the phone");
  // The server's refusal of the first correction is the one fault that was meant to be.
  expect(takeFaults().filter((fault) => !fault.includes("422"))).toEqual([]);
});

test("a provider that fails is seen in retries, in a text that is given up, in its circuit and in an alert", async () => {
  const { page, open, takeFaults } = desk;
  await turnKnobs({ twilio: { failNext: { status: 500, count: 1_000 } } });
  const told = { failureJob: { name: "runners.sms.default_failure", kwargs: {} } };
  await enqueueSms(
    stage.house.ctx,
    Array.from({ length: 7 }, (_, at) => ({
      phoneNumber: `+1202555020${at}`,
      body: "Does this arrive?",
      successJob: { name: "runners.sms.default_success", kwargs: {} },
      ...told,
    })),
  );
  await open("/sms");
  await page.getByText("closed: in use").waitFor();
  await page.getByRole("button", { name: "Send a test" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Phone number" }).fill("+12025550199");
  await dialog.getByRole("button", { name: "Count the pieces" }).click();
  await dialog.getByText("1 piece in GSM-7").waitFor();
  await dialog.getByRole("button", { name: "Send it" }).click();
  const steps = dialog.locator(".mantine-Timeline-item");
  await steps.getByText("retried", { exact: true }).waitFor(SOON);
  await steps.getByText("abandoned", { exact: true }).waitFor(SOON);
  await dialog.getByText("It has ended").waitFor(SOON);
  await page.keyboard.press("Escape");
  await page.getByText("open: passed over").waitFor(SOON);
  await page.getByText(/failed 10 times within 300 s for sms/).waitFor(SOON);
  expect(await arrivedAt("+12025550199")).toBe(0);
  await turnKnobs({ twilio: { failNext: null } });
  expect(takeFaults()).toEqual([]);
}, 60_000);

test("an address that is suppressed by hand is found, holds test mails back, and gets mails again once it is lifted", async () => {
  const { page, open } = desk;
  const address = "quiet@example.com";
  const trySend = async () => {
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Email address" }).fill(address);
    await page.getByRole("dialog").getByRole("button", { name: "Send it" }).click();
  };
  await open("/email?tab=suppressed");
  await page.getByRole("button", { name: "Suppress", exact: true }).click();
  await page.getByRole("textbox", { name: "Email address", exact: true }).fill(address);
  await page.getByRole("textbox", { name: "Note" }).fill(SCRIPT);
  await page.getByRole("button", { name: "Suppress it" }).click();
  await page.getByText(`${address} gets no more mails`).waitFor();
  await page.getByRole("textbox", { name: "Search by email address" }).fill(address);
  const row = page.getByRole("row").filter({ hasText: address });
  await row.getByText("by hand").waitFor();
  await row.getByText(SCRIPT).waitFor();
  await eventually(async () => (await page.getByText("left@example.com").count()) === 0, "nobody else in the list");
  await trySend();
  await page.getByText("That did not work").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: `Lift: ${address}` }).click();
  await page.getByRole("button", { name: "Lift it" }).click();
  await page.getByText("None found").waitFor();
  await trySend();
  await page.locator(".mantine-Timeline-item").getByText("delivered", { exact: true }).waitFor(SOON);
  expect(await arrivedAt(address)).toBe(1);
});

test("a script in a subject, in a reason or in the key of a breakdown is text on every page", async () => {
  const { page, open, takeFaults } = desk;
  takeFaults();
  let dialogs = 0;
  page.on("dialog", () => dialogs++);
  await open("/email?tab=pending");
  await page.getByText(`News for ${SCRIPT}`).waitFor();
  await page.getByRole("button", { name: "Details" }).first().click();
  await page.getByText(SCRIPT, { exact: false }).nth(1).waitFor();
  await open("/email?tab=charts");
  await page.getByText(SCRIPT).first().waitFor();
  await page.getByRole("button", { name: "Mails by template: show the numbers as a table" }).click();
  await page.getByRole("columnheader", { name: SCRIPT }).waitFor({ state: "attached" });
  await open("/push?tab=quarantine");
  await page.getByText(`not an entry: ${SCRIPT}`).waitFor();
  expect(await page.locator("script:not([src])").count()).toBe(0);
  expect(dialogs).toBe(0);
  expect(takeFaults()).toEqual([]);
});

test("the page of a channel says which provider carried how many messages on each day", async () => {
  const { page, open, takeFaults } = desk;
  await open("/email");
  const carried = page.getByRole("table", { name: "Which provider took how many mails, by day" });
  const row = carried.getByRole("row").filter({ hasText: "ses 57, smtp 38" });
  await row.getByRole("cell", { name: "4", exact: true }).waitFor();
  await open("/sms");
  expect(await page.getByText("smtp").count()).toBe(0);
  expect(takeFaults()).toEqual([]);
});

test("the numbers of a chart come as a file, with a column for every key of a breakdown and today marked", async () => {
  const { page, open, takeFaults } = desk;
  await open("/email?tab=charts");
  await page.getByText("30 days", { exact: true }).click();
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Mails by template: download as CSV" }).click();
  const file = await coming;
  expect(file.suggestedFilename()).toBe("mails-by-template.csv");
  const lines = readFileSync(await file.path(), "utf8").split("\r\n");
  const columns = lines[0]!.split(",");
  expect([columns[0], columns.at(-1)]).toEqual(["date", "open"]);
  expect(columns).toEqual(expect.arrayContaining(["dailyReminder", "verifyEmailCode", SCRIPT]));
  const days = lines.slice(1, -1).map((line) => line.split(","));
  expect(days.length).toBe(30);
  expect(days.map((day) => day.at(-1)).slice(-3)).toEqual(["", "not final", "so far"]);
  expect(Number(days[0]![columns.indexOf("dailyReminder")])).toBeGreaterThan(0);
  expect(takeFaults()).toEqual([]);
});

test("a template is shown in the colours of readers who like it dark, whatever the page has", async () => {
  const { page, open, context, takeFaults } = await stage.visit({ colorScheme: null });
  await open("/templates?template=sample");
  const ground = () =>
    page.frames()[1]?.evaluate<string>("document.body ? getComputedStyle(document.body).backgroundColor : ''");
  await eventually(async () => (await ground()) === "rgb(244, 246, 249)", "a light mail");
  await page.getByText("Dark", { exact: true }).click();
  await eventually(async () => (await ground()) === "rgb(16, 22, 29)", "a dark mail");
  expect(await barriers(page)).toEqual([]);
  expect(takeFaults()).toEqual([]);
  await context.close();
});

test("a template is previewed with what somebody types, in a frame that runs nothing, on desks and phones", async () => {
  const { page, open, takeFaults } = desk;
  await open("/templates?template=sample");
  await page.getByRole("textbox", { name: "name" }).fill(SCRIPT);
  const mail = page.frameLocator("iframe");
  await mail.getByText(`Hello ${SCRIPT}`).waitFor(SOON);
  const width = async () => (await page.locator("iframe").boundingBox())!.width;
  const wide = await width();
  await page.getByText("Phone", { exact: true }).click();
  await eventually(async () => (await width()) <= 380, "a mail as narrow as a phone");
  expect(wide).toBeGreaterThan(500);
  await page.getByText("Text", { exact: true }).click();
  await page.locator("pre").getByText(`Hello ${SCRIPT}`).waitFor();
  await page.getByText("Headers", { exact: true }).click();
  await page.getByRole("cell", { name: "A sample mail" }).waitFor();
  await page.getByRole("textbox", { name: "name" }).fill("");
  await page.getByText("the parameters beside it have faults", { exact: false }).waitFor();
  expect(takeFaults().filter((fault) => !fault.includes("422"))).toEqual([]);
});
