import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { contacts } from "../../src/messaging/contacts/index.ts";
import { email } from "../../src/messaging/email/index.ts";
import { writeToken } from "../../src/messaging/email/unsubscribe-token.ts";
import { emailTemplates } from "../../src/messaging/email_templates/index.ts";
import { links } from "../../src/messaging/links/index.ts";
import { createLinks, linkSettings, recordTouches } from "../../src/messaging/links/service.ts";
import { sms } from "../../src/messaging/sms/index.ts";
import { openRooms, type RoomsHouse } from "../harness/rooms.ts";
import { barriers, scrollsSideways } from "./barriers.ts";
import { freePort, PERSON } from "./stage.ts";

const READER = "ada@example.com";

let house: RoomsHouse;
let browser: Browser;
let root = "";
/** The codes of a link that leads home and of one for leaving, and the token of a mail. */
let home = "";
let leaving = "";
let token = "";

beforeAll(async () => {
  const port = await freePort();
  root = `http://127.0.0.1:${port}`;
  house = await openRooms({
    rooms: [contacts, sms, emailTemplates, email, links],
    settings: [[linkSettings.webRoot, root]],
    port,
  });
  await house.person("ada");
  const touchUid = "crl_tch_pages";
  const preview = { identifier: "unsubscribe", extra: { list: "daily reminders" } };
  const made = await createLinks(house.ctx, [
    { touchUid, page: { identifier: "home" } },
    { touchUid, page: { identifier: "unsubscribe" }, preview, codeStyle: "long" },
  ]);
  [home, leaving] = made.map(({ code }) => code) as [string, string];
  await recordTouches(house.ctx.sql.tables() as never, [
    {
      row_uid: "crl_tch_r_pages",
      uid: touchUid,
      user_sub: "ada",
      channel: "email",
      touch_point_id: null,
      destination: READER,
      message: {},
      created_at: house.ctx.clock.now(),
    },
  ]);
  const wish = { email: READER, emailUid: "crl_em_pages", list: "reminders", issuedAt: house.ctx.clock.now() };
  token = writeToken(house.ctx, wish);
  const { prepareChromium } = await import(new URL("../../scripts/chromium.js", import.meta.url).href);
  const executablePath = (await prepareChromium()) as string;
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}, 180_000);
afterAll(async () => {
  await browser?.close();
  await house?.close();
});

const SCREENS = [
  { width: 1280, height: 800, colorScheme: "light" },
  { width: 390, height: 780, colorScheme: "dark" },
] as const;

test("the pages behind links have no barriers and no sideways scroll, on desks in the light and phones in the dark", async () => {
  for (const { width, height, colorScheme } of SCREENS) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", ({ message }) => faults.push(message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) faults.push(message.text());
    });
    // The landing page would go on by itself.
    await page.route(`${root}/l/${home}`, (route) =>
      route.request().method() === "POST" ? route.fulfill({ status: 204 }) : route.continue(),
    );
    const look = async () => {
      expect(await barriers(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);
    };
    const titled = (name: string) => page.getByRole("heading", { level: 1, name }).waitFor();
    await page.goto(`${root}/l/${home}`, { waitUntil: "commit" });
    await titled("You have a message.");
    await look();
    await page.goto(`${root}/l/${leaving}/unsubscribe`);
    await titled("Unsubscribe");
    await look();
    await page.getByLabel("Your email address").fill("bob@example.com");
    await page.getByRole("button", { name: "Unsubscribe" }).click();
    await page.getByRole("alert").waitFor();
    await look();
    await page.getByLabel("Your email address").fill(READER);
    await page.getByRole("button", { name: "Unsubscribe" }).click();
    await titled("You are unsubscribed");
    await look();
    await page.getByRole("button", { name: "Undo" }).click();
    await titled("Good to have you back");
    await look();
    await page.goto(`${root}/api/1/emails/unsubscribe/${token}`);
    await titled("Unsubscribe from these mails?");
    await look();
    expect(faults).toEqual([]);
    await context.close();
  }
}, 120_000);

test("with scripts a link goes on by itself, and without them with one press; both are one click each", async () => {
  const withScripts = await browser.newContext({ userAgent: PERSON });
  const page = await withScripts.newPage();
  await page.goto(`${root}/l/${home}`);
  await page.waitForURL(`${root}/`);
  await withScripts.close();
  await house.base.clock.advance(4);
  const without = await browser.newContext({ javaScriptEnabled: false, userAgent: PERSON });
  const plain = await without.newPage();
  await plain.goto(`${root}/l/${home}`);
  await plain.getByRole("button", { name: "Continue" }).click();
  await plain.waitForURL(`${root}/`);
  await plain.goto(`${root}/l/nobody`);
  await plain.getByRole("button", { name: "Continue" }).click();
  await plain.getByRole("heading", { level: 1, name: "This link does not work" }).waitFor();
  await without.close();
  const view = (await house.call("GET", `/api/1/admin/touch/links/${home}`)).json();
  expect(view.clicks).toHaveLength(2);
}, 60_000);
