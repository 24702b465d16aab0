import { afterAll, beforeAll, expect, test } from "vitest";
import { keys as touchKeys } from "../../src/messaging/touch/keys.ts";
import { eventually } from "../harness/facts.ts";
import { barriers, scrollsSideways } from "./barriers.ts";
import { type PeopleScene, POINT, peopleScene, SCRIPT } from "./people-scene.ts";
import { freePort, openStage, type Stage, type Visit } from "./stage.ts";

let stage: Stage;
let scene: PeopleScene;
let desk: Visit;
beforeAll(async () => {
  // Links in messages lead to this very server, so that they can be followed.
  stage = await openStage({ CARILLON_HTTP_PORT: `${await freePort()}` });
  scene = await peopleScene(stage.house);
  desk = await stage.visit();
  // Sooner than the test itself gives up, so that a failure names the step.
  desk.page.setDefaultTimeout(15_000);
}, 180_000);
afterAll(() => stage?.close());

interface Received {
  readonly items: readonly { readonly text: string; readonly codes: readonly string[] }[];
}
const received = (to: string) =>
  scene.call<Received>("GET", `/sandbox/api/recipients/${encodeURIComponent(to)}`).then(({ items }) => items);

/** Sends the touch point that the page shows to somebody, and goes to what becomes of it. */
async function sendTo(search: string, option: RegExp, channel: string): Promise<void> {
  const { page } = desk;
  await page.getByRole("button", { name: "Send to a person" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Person" }).fill(search);
  await page.getByRole("option", { name: option }).click();
  for (const name of ["Push", "SMS", "Email"])
    await dialog.getByRole("checkbox", { name }).setChecked(name === channel);
  await dialog.getByRole("button", { name: "Send it now" }).click();
  await dialog.getByRole("link", { name: "Watch it go" }).click();
  await page.getByRole("heading", { level: 1, name: "Touch", exact: true }).waitFor();
}

test("a touch that somebody sends is watched from queued to delivered, tapped on the phone of the inbox, and seen as clicked", async () => {
  const { page, open, takeFaults } = desk;
  await open(`/touch-points/${scene.pointUid}`);
  await sendTo("+1 202 555 0133", /Chiyo Tanaka/, "SMS");
  const stations = page.getByRole("list", { name: "How far it has come" });
  const passed = async (station: string) =>
    expect(await stations.getByRole("listitem").filter({ hasText: station }).textContent()).not.toMatch(/not yet/);
  const moments = page.getByRole("list", { name: "Moments of the touch" });
  await moments.getByText("Queued", { exact: true }).first().waitFor();
  await moments.getByText("Accepted by the provider").waitFor();
  await moments.getByText("Delivered", { exact: true }).last().waitFor();
  await passed("Delivered");
  await page.getByRole("table", { name: "About the touch" }).getByRole("link", { name: "Chiyo Tanaka" }).waitFor();
  expect(await stations.getByText("not yet").count()).toBe(1);
  // A reminder may come in between, if this is an hour for reminders where she lives.
  const isOurs = ({ text: words }: Received["items"][number]) => words.includes("your class starts");
  const text = await eventually(async () => (await received("+12025550133")).find(isOurs), "a text");
  const phone = await desk.context.newPage();
  await phone.goto(`${stage.url}/sandbox`);
  const notices = phone.getByRole("list", { name: "Notifications" });
  await notices.getByRole("button", { name: /\+12025550133.*your class starts/ }).click();
  const landing = desk.context.waitForEvent("page");
  await phone
    .getByRole("list", { name: "Texts with +12025550133" })
    .getByRole("link", { name: new RegExp(text.codes[0]!) })
    .click();
  await (await landing).waitForLoadState();
  await moments.getByText("Clicked", { exact: true }).waitFor();
  await passed("Clicked");
  expect(await stations.getByText("not yet").count()).toBe(0);
  await Promise.all([phone.close(), (await landing).close()]);
  // The link leads on to its own clicks, with the program that previewed it kept apart.
  await page.getByRole("link", { name: text.codes[0]!, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Links" }).waitFor();
  await page.getByRole("table", { name: "Clicks of the link" }).getByText("clicked", { exact: true }).waitFor();
  await page.getByText(/^1 use by people, and apart from them/).waitFor();
  expect(takeFaults()).toEqual([]);
});

test("a campaign begins after a look at whom it reaches and what they read, ends in the list, and one that runs is stopped", async () => {
  const { page, open, takeFaults } = desk;
  await open("/campaigns");
  await page.getByText("Nobody was told anything yet").waitFor();
  await page.getByRole("button", { name: "New campaign" }).click();
  const form = page.getByRole("dialog", { name: "Tell everybody" });
  await form.getByRole("combobox", { name: "Touch point" }).fill("class");
  await page.getByRole("option", { name: POINT.event_slug }).click();
  await form.getByRole("radio", { name: "Email" }).check();
  await form.getByRole("status").filter({ hasText: "It reaches 4 people of 5." }).waitFor();
  await form.getByText("Your class starts, there").first().waitFor();
  expect(await barriers(page)).toEqual([]);
  await form.getByRole("button", { name: "Tell 4 people" }).click();
  await page.getByRole("button", { name: "Tell them now" }).click();
  const row = page.getByRole("row").filter({ hasText: POINT.event_slug });
  await row.getByText("finished", { exact: true }).waitFor();
  expect(await row.getByRole("cell").nth(4).textContent()).toBe("4");
  await row.getByRole("button", { name: "Details" }).click();
  await page.getByText(/^crl_tcm_/).waitFor();
  // While the job's lock is held nobody is told, so that there is one to stop.
  await stage.house.ctx.locks.withLock(touchKeys.campaignLock(), { kind: "owner", wait: "fail" }, async () => {
    await scene.call("POST", "/api/1/admin/email/announcement", { touch_point_event_slug: POINT.event_slug });
    await page
      .getByRole("progressbar", { name: `How far the campaign of ${POINT.event_slug} is` })
      .waitFor({ state: "attached" });
    expect([await barriers(page), takeFaults()]).toEqual([[], []]);
    await page.getByRole("button", { name: `Stop the campaign of ${POINT.event_slug}` }).click();
    await page.getByRole("button", { name: "Stop it" }).click();
    await page.getByText("stopped", { exact: true }).waitFor();
  });
  expect(takeFaults()).toEqual([]);
});

test("a touch point is edited with a preview of what people will see, and made and removed", async () => {
  const { page, open, takeFaults } = desk;
  await open("/touch-points");
  await page.getByLabel("Find a touch point").fill("class");
  await page.getByRole("link", { name: "daily_reminder" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: POINT.event_slug }).click();
  await page.getByRole("tab", { name: /SMS/ }).click();
  const save = page.getByRole("button", { name: "Save", exact: true });
  expect(await save.isDisabled()).toBe(true);
  await page.getByLabel("Text", { exact: true }).fill("Dear {name}, come in: {url}");
  await page.getByText("Dear Ada, come in: https://example.com/l/4Wq9", { exact: true }).waitFor();
  await page.getByRole("link", { name: "All touch points" }).click();
  const unsaved = page.getByRole("dialog", { name: "Your changes are not saved" });
  await unsaved.getByRole("button", { name: "Stay here" }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await unsaved.getByRole("button", { name: "Stay here" }).click();
  await unsaved.waitFor({ state: "detached" });
  await save.click();
  await page.getByText("Saved: from now on").waitFor();
  const { messages } = await scene.call<{ messages: { sms: object[] } }>(
    "GET",
    `/api/1/admin/touch_points/${scene.pointUid}`,
  );
  expect(messages.sms).toMatchObject([
    { body_format: "Dear {name}, come in: {url}", body_parameters: ["name", "url"] },
  ]);

  await page.getByRole("link", { name: "All touch points" }).click();
  await page.getByRole("link", { name: "New touch point" }).click();
  await page.getByLabel("Name", { exact: true }).fill("bell_rings");
  await page.getByRole("button", { name: "Add a message" }).click();
  await page.getByText("Hello Ada", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("heading", { level: 1, name: "bell_rings" }).waitFor();
  await page.getByRole("button", { name: "Remove this touch point" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByText("bell_rings is removed").waitFor();
  await page.getByRole("heading", { level: 1, name: "Touch points" }).waitFor();
  expect(takeFaults()).toEqual([]);
});

test("a person is made by hand with an address, and one that is none is refused in words", async () => {
  const { page, open, takeFaults } = desk;
  await open("/people");
  await page.getByRole("button", { name: "Add a person" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Given name").fill("Noor");
  expect(await barriers(page)).toEqual([]);
  await form.getByRole("button", { name: "Add them" }).click();
  await page.getByRole("heading", { level: 1, name: "Noor" }).waitFor();
  await page.getByRole("button", { name: "Add an address" }).click();
  const address = page.getByLabel("Email address or phone number");
  await address.fill("noor");
  await page.getByRole("button", { name: "Add it" }).click();
  await page.getByText("That did not work").waitFor();
  await address.fill("noor@example.com");
  await page.getByRole("button", { name: "Add it" }).click();
  await page.getByRole("row").filter({ hasText: "noor@example.com" }).getByText("reachable", { exact: true }).waitFor();
  expect(takeFaults().filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("who unsubscribes on the public page is shown as suppressed, and may be written to again once that is lifted", async () => {
  const { page, open, takeFaults } = desk;
  await open("/touch-points/crl_tpo_daily_reminder");
  await sendTo("bruno@", /Bruno/, "Email");
  await page
    .getByRole("list", { name: "Moments of the touch" })
    .getByText("Delivered", { exact: true })
    .last()
    .waitFor();
  const codes = await eventually(async () => (await received("bruno@example.com"))[0]?.codes, "a mail");
  const code = codes.find(({ length }) => length > 60)!;

  const reader = await stage.browser.newContext();
  const mail = await reader.newPage();
  await mail.goto(`${stage.url}/l/${code}/unsubscribe`);
  await mail.getByLabel("Your email address").fill("bruno@example.com");
  await mail.getByRole("button", { name: "Unsubscribe" }).click();
  await mail.getByRole("button", { name: "Undo: subscribe me again" }).waitFor();
  await reader.close();

  await open("/people");
  await page.getByLabel("Find somebody").fill("bruno@exam");
  await page.getByRole("link", { name: "Amara Okafor" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Bruno" }).click();
  const row = page.getByRole("row").filter({ hasText: "bruno@example.com" });
  await row.getByText("suppressed", { exact: true }).waitFor();
  await row.getByText(/they unsubscribed/).waitFor();
  await row.getByRole("button", { name: "Lift the suppression of bruno@example.com" }).click();
  await page.getByRole("button", { name: "Lift it" }).click();
  await row.getByText("reachable", { exact: true }).waitFor();

  await row.getByRole("switch", { name: "Notifications to bruno@example.com" }).click();
  await row.getByText("switched off", { exact: true }).waitFor();
  await page.getByRole("tab", { name: "Logs" }).click();
  await page
    .getByRole("table", { name: /^Changes of addresses/ })
    .getByText("switched off")
    .waitFor();
  await page.getByRole("tab", { name: "Touches" }).click();
  await page.getByRole("link", { name: "daily_reminder" }).waitFor();
  expect(takeFaults()).toEqual([]);
});

test("a script in the name of a person and in the words of a message is shown as text wherever it stands", async () => {
  const { page, open, takeFaults } = desk;
  const alarms: string[] = [];
  page.on("dialog", (dialog) => {
    alarms.push(dialog.message());
    void dialog.dismiss();
  });
  const { touches } = await scene.call<{ touches: { uid: string }[] }>("POST", "/api/1/admin/touches", {
    user_sub: "ada",
    touch_point_event_slug: POINT.event_slug,
    channels: ["email"],
    event_parameters: { name: SCRIPT },
  });
  await open(`/touches/${touches[0]!.uid}`);
  await page
    .getByRole("list", { name: "Moments of the touch" })
    .getByText("Delivered", { exact: true })
    .last()
    .waitFor();
  await page.getByRole("region", { name: "JSON" }).filter({ hasText: "<script>" }).first().waitFor();
  await page.getByRole("link", { name: `Ada ${SCRIPT}` }).waitFor();
  await open("/touches");
  await page
    .getByRole("table", { name: /^Touches that arrived/ })
    .getByRole("link", { name: `Ada ${SCRIPT}` })
    .first()
    .waitFor();
  await open("/people");
  await page.getByRole("link", { name: `Ada ${SCRIPT}` }).click();
  await page.getByRole("heading", { level: 1, name: `Ada ${SCRIPT}` }).waitFor();
  expect(await page.title()).toBe(`Ada ${SCRIPT} · Carillon`);
  for (const tab of ["Touches", "Debug trail"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("button", { name: "Details" }).first().click();
    await page.getByRole("region", { name: "JSON" }).waitFor();
  }
  await open(`/touch-points/${scene.pointUid}`);
  await page.getByText(`Your class starts in an hour ${SCRIPT}`, { exact: true }).last().waitFor();
  await page.getByRole("tab", { name: /Email/ }).click();
  await page.frameLocator("iframe").getByRole("paragraph").getByText(SCRIPT, { exact: true }).waitFor();
  expect(alarms).toEqual([]);
  expect(await page.locator("#content img[src=x], #content script").count()).toBe(0);
  expect(takeFaults()).toEqual([]);
});

test("the pages of a person, a touch and a link have no faults, barriers or sideways scroll on desks and phones", async () => {
  const phone = await stage.visit({ width: 390, height: 844, colorScheme: "dark" });
  const { codes } = await scene.call<{ codes: string[] }>("GET", `/api/1/admin/touches/${scene.touchUid}`);
  const paths = [
    `/touches/${scene.touchUid}`,
    `/links?code=${codes[0]}`,
    "/people/amara.okafor",
    "/people/amara.okafor?tab=reminders",
    "/people/amara.okafor?tab=trail",
    "/people/amara.okafor?tab=logs",
  ];
  for (const { page, open, takeFaults } of [desk, phone])
    for (const path of paths) {
      await open(path);
      expect([path, await scrollsSideways(page), await barriers(page), takeFaults()]).toEqual([path, false, [], []]);
    }
  await phone.context.close();
}, 60_000);
