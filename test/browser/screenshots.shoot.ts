import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { eventually } from "../harness/facts.ts";
import { writeBreakdowns } from "./channel-scene.ts";
import { livingHouse } from "./living-house.ts";
import { openStage, type Stage, settled, type VisitOptions } from "./stage.ts";
import { type StillwaterScene, stillwaterScene } from "./stillwater-scene.ts";

interface Shot extends VisitOptions {
  readonly name: string;
  /** An address of the server, or what makes one of the scene. */
  readonly path: string | ((scene: StillwaterScene) => string);
  /** As high as the page is, up to this many pixels; as high as the window unless given. */
  readonly upTo?: number;
  /** What is done on the page before. */
  readonly act?: (page: Page) => Promise<void>;
}

const PHONE = { width: 390, height: 844 } as const;

/** The pictures of the handbook: a name, an address, and how it is looked at. */
const SHOTS: readonly Shot[] = [
  { name: "overview", path: "/admin/", upTo: 1_300 },
  { name: "overview-dark", path: "/admin/", colorScheme: "dark" },
  { name: "overview-phone", path: "/admin/", ...PHONE },
  { name: "jobs", path: "/admin/jobs?tab=recurring" },
  { name: "jobs-failed", path: "/admin/jobs?tab=failed" },
  { name: "alerts", path: "/admin/alerts" },
  { name: "push", path: "/admin/push" },
  { name: "sms", path: "/admin/sms" },
  { name: "email", path: "/admin/email", upTo: 1_200 },
  { name: "email-suppressed-phone", path: "/admin/email?tab=suppressed", ...PHONE },
  { name: "templates", path: "/admin/templates?template=eventRegistration" },
  { name: "touch-points", path: "/admin/touch-points" },
  { name: "touch-point", path: "/admin/touch-points/crl_tpo_daily_reminder", upTo: 1_000 },
  { name: "touch", path: ({ touchUid }) => `/admin/touches/${touchUid}`, upTo: 1_100 },
  { name: "touch-phone", path: ({ touchUid }) => `/admin/touches/${touchUid}`, ...PHONE },
  {
    name: "campaigns",
    path: "/admin/campaigns",
    act: async (page) => {
      await page.getByRole("button", { name: "New campaign" }).click();
      await page.getByRole("combobox", { name: "Touch point" }).fill("ten_day");
      await page.getByRole("option", { name: "ten_day_challenge" }).click();
      await page.getByRole("status").filter({ hasText: "It reaches" }).waitFor();
    },
  },
  { name: "links", path: "/admin/links" },
  { name: "reminders", path: "/admin/reminders", upTo: 1_100 },
  { name: "people", path: "/admin/people" },
  { name: "person", path: ({ sub }) => `/admin/people/${sub}` },
  { name: "data-health", path: "/admin/data-health" },
  { name: "keyspace", path: "/admin/keyspace" },
  {
    name: "settings",
    path: "/admin/settings",
    act: (page) => page.getByPlaceholder("Find a setting, a variable or a meaning").fill("reminder"),
  },
  {
    name: "inbox",
    path: "/sandbox",
    act: (page) => page.frameLocator("iframe").locator("body", { hasText: /\w/ }).waitFor(),
  },
  { name: "inbox-phone", path: "/sandbox", ...PHONE, colorScheme: "dark" },
  { name: "faults", path: "/sandbox#faults" },
  { name: "unsubscribe", path: ({ leaveCode }) => `/l/${leaveCode}/unsubscribe`, ...PHONE, signedIn: false },
];

const folder = process.env.CARILLON_SCREENSHOTS ?? fileURLToPath(new URL("../../docs/images", import.meta.url));
const only = process.env.CARILLON_SCREENSHOTS_ONLY;

let stage: Stage;
let scene: StillwaterScene;
beforeAll(async () => {
  stage = await openStage();
  await livingHouse(stage.house);
  await writeBreakdowns(stage.house.ctx);
  scene = await stillwaterScene(stage.house);
  mkdirSync(folder, { recursive: true });
}, 300_000);
afterAll(() => stage?.close());

test.each(SHOTS.filter(({ name }) => !only || name.startsWith(only)))(
  "$name",
  async ({ name, path, upTo, act, ...how }) => {
    const { page, context } = await stage.visit(how);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await context.addInitScript("localStorage.setItem('carillon-welcome-read', 'true')");
    const address = typeof path === "string" ? path : path(scene);
    await page.goto(stage.url + address);
    await page.locator("h1").first().waitFor();
    if (address.startsWith("/admin")) {
      await settled(page);
      await page.waitForLoadState("networkidle");
      await isDrawn(page);
    }
    // The inbox waits for the next message all the time.
    if (address === "/sandbox") await page.getByText("delivered").first().waitFor();
    await act?.(page);
    await take(context, page, `${folder}/${name}.webp`, upTo);
    await context.close();
  },
);

/** Charts are drawn a moment after their numbers are there. */
const isDrawn = (page: Page) =>
  eventually(
    () =>
      page.evaluate<boolean>(
        "[...document.querySelectorAll('#content [role=img] div')].length === 0 || document.querySelector('.recharts-surface path') !== null",
      ),
    "the charts of the page",
  );

/** In a format that is a third as heavy as PNG, which the browser makes only when asked like this. */
async function take(context: BrowserContext, page: Page, file: string, upTo: number | undefined): Promise<void> {
  const { width, height } = page.viewportSize()!;
  if (upTo !== undefined) {
    const whole = await page.evaluate<number>("document.documentElement.scrollHeight");
    await page.setViewportSize({ width, height: Math.min(upTo, Math.max(height, whole)) });
  }
  const session = await context.newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 85 });
  writeFileSync(file, Buffer.from(data, "base64"));
}
