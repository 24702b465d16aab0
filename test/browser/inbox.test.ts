import { sql as raw } from "kysely";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sandboxOf } from "../../src/infrastructure/sandbox/service.ts";
import { enqueueMails } from "../../src/messaging/email/service.ts";
import { enqueuePushes } from "../../src/messaging/push/service.ts";
import { enqueueSms } from "../../src/messaging/sms/service.ts";
import { eventually } from "../harness/facts.ts";
import { barriers, scrollsSideways } from "./barriers.ts";
import { openStage, type Stage, type Visit } from "./stage.ts";

/** What would tell on itself if a page took it for markup. */
const SCRIPT = "<img src=x onerror=\"document.title='taken over'\"><script>document.title='taken over'</script>";

let stage: Stage;
/** Nobody is signed in: the inbox asks for no more than being on this machine. */
let visit: Visit;
let page: Page;
beforeAll(async () => {
  stage = await openStage();
  visit = await stage.visit({ signedIn: false });
  page = visit.page;
  page.setDefaultTimeout(15_000);
  await show("");
}, 180_000);
afterAll(() => stage?.close());

async function show(view: "" | "#mail" | "#faults", on = page): Promise<void> {
  await on.goto("about:blank");
  await on.goto(`${stage.url}/sandbox${view}`);
  await on.getByRole("heading", { level: 1, name: "Sandbox inbox" }).waitFor();
}

const told = (channel: string) => ({
  failureJob: { name: `runners.${channel}.default_failure`, kwargs: {} },
  successJob: { name: `runners.${channel}.default_success`, kwargs: {} },
});
const text = (phoneNumber: string, body: string) =>
  enqueueSms(stage.house.ctx, [{ phoneNumber, body, ...told("sms") }]);
const mail = (email: string) =>
  enqueueMails(stage.house.ctx, [{ email, template: "verifyEmailCode", parameters: { code: "424242" } }]);

/** A mail that no template of this house would make, given to the provider by somebody else. */
async function foreignMail(to: string, subject: string, html: string): Promise<void> {
  const written = `Subject: ${subject}\r\nTo: ${to}\r\nContent-Type: text/html\r\n\r\n${html}`;
  const { url } = sandboxOf(stage.house.ctx);
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/ses/aws4_request, SignedHeaders=host, Signature=${"0".repeat(64)}`;
  const answer = await fetch(`${url}/v2/email/outbound-emails`, {
    method: "POST",
    headers: { authorization, "x-amz-date": "20260101T000000Z" },
    body: JSON.stringify({
      FromEmailAddress: "stranger@example.com",
      Destination: { ToAddresses: [to] },
      Content: { Raw: { Data: Buffer.from(written).toString("base64") } },
    }),
  });
  expect(answer.status).toBe(200);
}

const suppressed = async (table: "suppressed_phone_numbers" | "suppressed_emails") => {
  const asked = raw<Record<string, string>>`select * from ${raw.table(table)}`;
  return (await asked.execute(stage.house.ctx.sql.tables())).rows;
};

test("a text and a push arrive on the phone while somebody looks, and the text's link can be tapped", async () => {
  const notices = page.getByRole("list", { name: "Notifications" });
  await page.getByText("Nothing arrived yet").waitFor();
  const link = `${stage.url}/l/abcd`;
  await text("+12025550123", `Your class starts: ${link}. See you`);
  await enqueuePushes(stage.house.ctx, [
    {
      pushToken: "ExponentPushToken[phone-00000001]",
      contents: { title: "Good morning", body: "Breathe in", channel_id: "default" },
      ...told("push"),
    },
  ]);
  await notices.getByRole("button", { name: /\+12025550123.*Your class starts/ }).waitFor();
  await notices.getByRole("button", { name: /Good morning.*Breathe in/ }).click();
  await page.getByRole("dialog").getByText("What happened").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await notices.getByRole("button", { name: /\+12025550123/ }).click();
  const bubble = page.getByRole("list", { name: "Texts with +12025550123" });
  const opening = visit.context.waitForEvent("page");
  await bubble.getByRole("link", { name: link, exact: true }).click();
  const opened = await opening;
  expect(opened.url()).toBe(link);
  await opened.close();
  expect(visit.takeFaults()).toEqual([]);
});

test("STOP answered on the phone suppresses the number, and START frees it", async () => {
  const thread = page.getByRole("list", { name: "Texts with +12025550123" });
  await page.getByRole("button", { name: "STOP", exact: true }).click();
  await page.getByText("Sent; Carillon answered 200").first().waitFor();
  await thread.getByText("STOP", { exact: true }).waitFor();
  await page.getByText("said STOP").waitFor();
  const isHeldBack = async () =>
    (await suppressed("suppressed_phone_numbers")).some(({ phone_number }) => phone_number === "+12025550123");
  await eventually(isHeldBack, "the number among the suppressed ones");
  await page.getByRole("textbox", { name: "Answer" }).fill("START");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await thread.getByText("START", { exact: true }).waitFor();
  await eventually(async () => !(await isHeldBack()), "the number free again");
  await page.getByText("said STOP").waitFor({ state: "detached" });
  expect(visit.takeFaults()).toEqual([]);
});

test("a mail is listed with its template and shown as HTML, text, headers and source, and the bounce button suppresses its address", async () => {
  await mail("ada@example.com");
  const mails = page.getByRole("list", { name: "Mails" });
  await mails.getByRole("button", { name: /ada@example.com.*verifyEmailCode/ }).click();
  await page.frameLocator("iframe").getByText("424242").first().waitFor();
  await page.getByRole("tab", { name: "Text" }).click();
  await page.getByRole("tabpanel").getByText("424242").first().waitFor();
  await page.getByRole("tab", { name: "Headers" }).click();
  await page.getByRole("table", { name: "Headers" }).getByRole("cell", { name: "ada@example.com" }).waitFor();
  await page.getByRole("tab", { name: "Source" }).click();
  await page
    .getByRole("tabpanel")
    .getByText(/^MIME-Version: 1.0|\nMIME-Version: 1.0/i)
    .waitFor();
  await page.getByRole("button", { name: "Bounce", exact: true }).click();
  await page.getByText("It bounced for good").first().waitFor();
  await page.getByRole("article").getByText("bounced", { exact: true }).first().waitFor();
  await eventually(
    async () =>
      (await suppressed("suppressed_emails")).some(({ email_address }) => email_address === "ada@example.com"),
    "the address among the suppressed ones",
  );
  expect(visit.takeFaults()).toEqual([]);
});

test("a knob that is turned is read back, works, and is reset with the others", async () => {
  const { knobs } = sandboxOf(stage.house.ctx);
  await show("#faults");
  await page.getByText("Everything works", { exact: true }).waitFor();
  await page.getByRole("tab", { name: "Texts" }).click();
  await page.getByRole("textbox", { name: "Error rate" }).fill("25");
  await page.getByRole("textbox", { name: "Error rate" }).press("Enter");
  await page.getByText("1 knob is turned").waitFor();
  expect(knobs.get().twilio.errorRate).toBe(0.25);
  await page.getByRole("tab", { name: "Mail" }).click();
  await page.getByRole("switch", { name: "Lose notifications" }).click();
  await page.getByText("2 knobs are turned").waitFor();
  await show("#faults");
  await page.getByText("2 knobs are turned").waitFor();
  await page.getByRole("tab", { name: /^Texts/ }).click();
  expect(await barriers(page)).toEqual([]);
  expect(await page.getByRole("textbox", { name: "Error rate" }).inputValue()).toBe("25 %");
  await page.getByRole("button", { name: "Reset all" }).click();
  await page.getByRole("button", { name: "Reset them" }).click();
  await page.getByText("Everything works", { exact: true }).waitFor();
  expect(knobs.get().ses.drop_notifications).toBe(false);
  expect(knobs.get().twilio.errorRate).toBe(0);
  expect(visit.takeFaults()).toEqual([]);
});

test("a script in a text, in the subject of a mail and in its body is shown as text or not at all, and never runs", async () => {
  await show("");
  await text("+12025550199", `Hello ${SCRIPT}`);
  await foreignMail("eve@example.com", `Look ${SCRIPT}`, `<h1>Look here</h1>${SCRIPT}`);
  await page.getByRole("list", { name: "Notifications" }).getByText(`Hello ${SCRIPT}`).waitFor();
  await page.getByRole("button", { name: /eve@example.com/ }).click();
  await page.getByRole("heading", { level: 2, name: `Look ${SCRIPT}` }).waitFor();
  const frame = page.frameLocator("iframe");
  await frame.getByRole("heading", { name: "Look here" }).waitFor();
  expect(await page.locator("iframe").getAttribute("sandbox")).not.toContain("scripts");
  await page.getByRole("tab", { name: "Source" }).click();
  await page.getByRole("tabpanel").getByText("document.title='taken over'").first().waitFor();
  expect(await page.title()).toBe("Sandbox inbox · Carillon");
  // The browser says that it did not run what the mail brought; that is the proof, and no fault of the page.
  const faults = visit.takeFaults();
  expect(faults.filter((fault) => !/sandboxed|Content Security Policy/.test(fault))).toEqual([]);
});

test("every view of the inbox is free of barriers and sideways scroll on desks and phones", async () => {
  for (const look of [{ width: 1280 }, { width: 390, height: 844, colorScheme: "dark" }] as const) {
    const other = await stage.visit({ ...look, signedIn: false });
    for (const view of ["", "#mail", "#faults"] as const) {
      await show(view, other.page);
      const waiting = other.page.locator(".mantine-Skeleton-root, [aria-label=Loading]");
      await eventually(async () => (await waiting.count()) === 0, "everything that the page waits for");
      expect([view, await scrollsSideways(other.page)]).toEqual([view, false]);
      expect([view, await barriers(other.page)]).toEqual([view, []]);
    }
    await other.context.close();
  }
}, 120_000);
