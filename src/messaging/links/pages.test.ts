import { createHash } from "node:crypto";
import { renderSVG } from "uqr";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type LinksHouse, openLinks, PERSON, ROOT } from "./links.fixture.ts";
import { settings } from "./settings.ts";

let house: LinksHouse;
beforeAll(async () => {
  house = await openLinks({ start: 1_790_000_000 });
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches", "suppressed_emails");
  await house.person("ada");
});

const BROWSER = { ...PERSON, accept: "text/html,application/xhtml+xml" };
const FORM = { ...BROWSER, "content-type": "application/x-www-form-urlencoded" };
const open = (path: string) => house.call("GET", path, { token: "", headers: BROWSER });
const send = (path: string, email: string) =>
  house.call("POST", path, { token: "", body: `email=${encodeURIComponent(email)}`, headers: FORM });
const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const between = (text: string, before: string, after: string) => text.split(before)[1]!.split(after)[0]!;
const suppressed = async () =>
  (await house.query<{ email: string }>("select email_address as email from suppressed_emails")).map(
    ({ email }) => email,
  );

async function leaving() {
  const link = await house.link({
    page: { identifier: "unsubscribe" },
    preview: { identifier: "unsubscribe", extra: { list: "daily reminders" } },
    codeStyle: "long",
  });
  await house.arrive(link.touchUid);
  return `/l/${link.code}/unsubscribe`;
}

test("a page runs and loads nothing but its own words to the letter, and cannot be framed or kept", async () => {
  const { code } = await house.link();
  const page = await open(`/l/${code}`);
  const policy = String(page.headers["content-security-policy"]);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain(`style-src ${hashOf(between(page.body, "<style>", "</style>"))}`);
  expect(policy).toContain(`script-src ${hashOf(between(page.body, "<script>", "</script>"))}`);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toMatch(/form-action 'self' https:(;|$)/);
  expect(policy).not.toContain("unsafe-inline");
  expect(page.headers["cache-control"]).toBe("no-store");
  expect(page.headers["x-robots-tag"]).toContain("noindex");
  const form = await open(await leaving());
  expect(String(form.headers["content-security-policy"])).not.toContain("script-src");
  expect(form.body).not.toContain("<script");
  for (const { body } of [page, form]) expect(body).not.toMatch(/ (src|style|onclick)=/);
});

test("a link tells chats its title, words, picture and address, and people without scripts have a button", async () => {
  const ctx = house.process({ settings: [[settings.siteImage, "https://example.test/card.png"]] });
  const { linkPage } = await import("./html.ts");
  const { tagsOf } = await import("./pages.ts");
  const { body } = linkPage(ctx, tagsOf(ctx, undefined), "abc") as { body: string };
  for (const line of [
    '<meta property="og:type" content="website">',
    '<meta property="og:site_name" content="Carillon">',
    '<meta property="og:title" content="Carillon">',
    '<meta property="og:description" content="You have a message.">',
    '<meta property="og:image" content="https://example.test/card.png">',
    `<meta property="og:url" content="${ROOT}/l/abc">`,
    '<meta name="twitter:card" content="summary_large_image">',
    '<form method="post"><button>Continue</button></form>',
    "<h1>You have a message.</h1>",
  ])
    expect(body).toContain(line);
});

test("whoever sends the form of a link that leads nowhere sees a page, and a program the error", async () => {
  const page = await house.call("POST", "/l/nobody", { token: "", headers: BROWSER });
  expect([page.statusCode, page.headers["content-type"]]).toEqual([404, "text/html; charset=utf-8"]);
  expect(page.body).toContain("<h1>This link does not work</h1>");
  expect((await house.call("POST", "/l/nobody", { token: "", headers: PERSON })).json().type).toBe("link_not_found");
});

test("people leave with a form, take it back, and are told what went wrong", async () => {
  const path = await leaving();
  expect((await open(path)).body).toContain("Get no more daily reminders.");
  const wrong = await send(path, "bob@example.com");
  expect([wrong.statusCode, wrong.body.includes('role="alert"')]).toEqual([403, true]);
  expect((await send(path, "nonsense")).statusCode).toBe(422);
  const left = await send(path, "ADA@example.com");
  expect(left.body).toContain("<h1>You are unsubscribed</h1>");
  expect(await suppressed()).toEqual(["ADA@example.com"]);
  expect((await send(`${path}/undo`, "bob@example.com")).statusCode).toBe(403);
  expect(await suppressed()).toHaveLength(1);
  const back = await send(`${path}/undo`, "ada@example.com");
  expect(back.body).toContain("<h1>Good to have you back</h1>");
  expect(await suppressed()).toEqual([]);
  await house.query(
    "insert into suppressed_emails (uid, email_address, reason, created_at) values ('crl_se_1', 'ada@example.com', 'Bounce', now())",
  );
  await send(`${path}/undo`, "ada@example.com");
  expect(await suppressed()).toEqual(["ada@example.com"]);
});

test("while nobody knows where a mail went, leaving is noted and nothing can be taken back", async () => {
  const { code } = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  const noted = await send(`/l/${code}/unsubscribe`, "ada@example.com");
  expect(noted.body).toContain("Noted.");
  expect(noted.body).not.toContain("Undo");
  expect((await send(`/l/${code}/unsubscribe/undo`, "ada@example.com")).statusCode).toBe(403);
});

test("a code for something else opens no form for leaving", async () => {
  const { code } = await house.link();
  const answer = await send(`/l/${code}/unsubscribe`, "ada@example.com");
  expect([answer.statusCode, answer.body.includes("This link does not work")]).toEqual([403, true]);
  expect(await suppressed()).toEqual([]);
});

test("a link is drawn as a QR code that leads to it, whatever the code, and is not used by it", async () => {
  const { code } = await house.link({ codeStyle: "short" });
  const drawn = await open(`/l/${code}.svg`);
  expect([drawn.statusCode, drawn.headers["content-type"]]).toEqual([200, "image/svg+xml; charset=utf-8"]);
  expect(drawn.body).toMatch(/^<svg [^>]*viewBox/);
  expect(drawn.body).not.toContain("<script");
  expect(drawn.body).toBe(renderSVG(`${ROOT}/l/${code}`, { ecc: "M", border: 2 }));
  expect((await open("/l/nobody.svg")).statusCode).toBe(200);
  expect((await open(`/l/${"x".repeat(256)}.svg`)).statusCode).toBe(422);
  expect((await house.statistics()).events.click_attempts).toBeUndefined();
  // The page itself is still where it was.
  expect((await open(`/l/${code}`)).headers["content-type"]).toContain("text/html");
});
