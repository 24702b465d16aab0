import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { buildServer } from "../../surfaces/http/index.ts";
import { suppressAfterFailure } from "../contacts/service.ts";
import { settings as brandSettings } from "../email_templates/settings.ts";
import { type EmailHouse, openEmail } from "./email.fixture.ts";
import { email as room } from "./index.ts";
import { send } from "./jobs.ts";
import { settings } from "./settings.ts";
import { emailSendStats } from "./stats.ts";
import { unsubscribeUrl } from "./unsubscribe-token.ts";

const PERSON = "ada@example.com";
const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const call = async (method: string, url: string, body?: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: { ...(body === undefined ? {} : FORM), ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
};
const linkFor = (email = PERSON, list = "reminders") =>
  unsubscribeUrl(house.ctx, { email, list, emailUid: "crl_em_x", issuedAt: 1 });
const suppressions = () => house.query("select reason, scope from suppressed_emails");
const optouts = () => house.query("select email_address, list from email_list_optouts order by list");
const checked = (html: string) => [...html.matchAll(/value="(\w+)" checked/g)].map(([, list]) => list);
const titleOf = (html: string) => /<h1>(.*?)<\/h1>/.exec(html)?.[1];

test("opening the link shows what its reader gets and changes nothing, with or without a slash at its end", async () => {
  for (const url of [linkFor(), `${linkFor()}/`]) {
    const page = await call("GET", url, undefined, BROWSER);
    expect([page.status, page.headers.get("content-type"), page.headers.get("set-cookie")]).toEqual([
      200,
      "text/html; charset=utf-8",
      null,
    ]);
    expect(titleOf(page.text)).toBe("Unsubscribe from these mails?");
    expect(page.text).toContain(PERSON);
    expect(checked(page.text)).toEqual(["reminders", "announcements"]);
  }
  expect(await suppressions()).toEqual([]);
  expect(await house.query("select 1 from unsubscribed_emails_log")).toEqual([]);
});

test("a page lets nothing run and nobody frame it, and is not kept or found by search engines", async () => {
  const page = await call("GET", linkFor(), undefined, BROWSER);
  expect(page.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("x-robots-tag")).toContain("noindex");
  expect(page.text).not.toMatch(/<script|style="|\son\w+=/);
});

test("what comes from outside is shown, never obeyed", async () => {
  const odd = house.process({ config: [[brandSettings.brandName, "<b>Bells</b> & 'co'"]] });
  const server = await buildServer(odd, [room]);
  const { pathname } = new URL(linkFor(`a&b'c@example.com`, '"><script>'));
  const page = await server.inject({ url: pathname });
  expect(page.statusCode).toBe(200);
  expect(page.body).toContain("&lt;b&gt;Bells&lt;/b&gt; &amp; &#39;co&#39;");
  expect(page.body).toContain("a&amp;b&#39;c@example.com");
  expect(page.body).not.toContain("<script");
  await server.close();
});

test("links that were made with an older secret work while it is listed, and new ones are made with the first", async () => {
  const wish = { email: PERSON, list: "reminders", emailUid: "crl_em_x", issuedAt: 1 };
  const withKeys = (...keys: string[]) => house.process({ config: [[settings.unsubscribeKeys, keys]] });
  const [old, fresh] = ["k1:a secret of last year", "k2:a secret of this year"];
  const links = {
    unlisted: unsubscribeUrl(house.ctx, wish),
    older: unsubscribeUrl(withKeys(old), wish),
    newer: unsubscribeUrl(withKeys(fresh, old), wish),
  };
  expect(Object.values(links).map((link) => /unsubscribe\/(\w+)\./.exec(link)?.[1])).toEqual(["0", "k1", "k2"]);
  const statusWith = async (keys: readonly string[], link: string) => {
    const server = await buildServer(withKeys(...keys), [room]);
    const { statusCode } = await server.inject({ method: "POST", url: new URL(link).pathname, headers: FORM });
    await server.close();
    return statusCode;
  };
  for (const link of Object.values(links)) {
    expect(await statusWith([fresh, old], link)).toBe(200);
    expect(await suppressions()).toEqual([{ reason: "User", scope: "lists" }]);
    await house.query("delete from suppressed_emails");
  }
  expect(await statusWith([fresh], links.older)).toBe(404);
  expect(await statusWith(["k1:another secret of that name"], links.older)).toBe(404);
  expect(await suppressions()).toEqual([]);
});

test("a browser that leaves sees that it is done and how to undo it, and the page remembers", async () => {
  const url = linkFor();
  const left = await call("POST", url, "List-Unsubscribe=One-Click", BROWSER);
  expect([left.status, titleOf(left.text)]).toEqual([200, "You are unsubscribed"]);
  expect(left.text).toContain(`action="${new URL(url).pathname}/undo"`);
  expect(await suppressions()).toEqual([{ reason: "User", scope: "lists" }]);
  const again = await call("GET", url, undefined, BROWSER);
  expect([titleOf(again.text), checked(again.text)]).toEqual(["You are unsubscribed", []]);
  const back = await call("POST", `${url}/undo`, "", BROWSER);
  expect([back.status, titleOf(back.text), checked(back.text)]).toEqual([
    200,
    "Good to have you back",
    ["reminders", "announcements"],
  ]);
  expect(await suppressions()).toEqual([]);
});

test("the one click of a mailbox is answered with a line of text, however its body is encoded", async () => {
  const multipart = '--x\r\ncontent-disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n';
  for (const [body, type] of [
    ["List-Unsubscribe=One-Click", "application/x-www-form-urlencoded"],
    [multipart, "multipart/form-data; boundary=x"],
    ["", "text/plain"],
  ] as const) {
    await house.query("delete from suppressed_emails");
    const done = await call("POST", linkFor(), body, { "content-type": type });
    expect([type, done.status, done.text]).toEqual([type, 200, "You are unsubscribed.\n"]);
    expect(await suppressions()).toEqual([{ reason: "User", scope: "lists" }]);
  }
});

test("somebody who stays on one list alone gets its mails and no others", async () => {
  const url = linkFor("Ada@example.com");
  const saved = await call("POST", `${url}/preferences`, "choose=lists&list=announcements", BROWSER);
  expect([saved.status, titleOf(saved.text), checked(saved.text)]).toEqual([200, "What you get", ["announcements"]]);
  expect([await suppressions(), await optouts()]).toEqual([
    [],
    [{ email_address: "Ada@example.com", list: "reminders" }],
  ]);
  await house.mail({
    email: PERSON,
    template: "dailyReminder",
    parameters: { name: "Ada", message: "Breathe", url: "https://example.com/now" },
  });
  await house.mail({
    email: PERSON,
    template: "welcome",
    parameters: { name: "Ada", url: "https://example.com/now" },
  });
  await house.code(PERSON);
  await house.run(send);
  const subjects = house.outbox().map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw)?.[1]);
  expect((await house.counts(emailSendStats)).words).toEqual({
    accepted: { welcome: 1, verifyEmailCode: 1 },
    failed_permanently: { "template:Suppressed": 1 },
  });
  expect(subjects).toHaveLength(2);
  expect(subjects.join()).not.toContain("reminder");
  for (const [body, status] of [
    ["choose=lists&list=nothing", 422],
    ["", 422],
    ["choose=lists", 200],
  ] as const)
    expect([body, (await call("POST", `${url}/preferences`, body)).status]).toEqual([body, status]);
  expect([await suppressions(), await optouts()]).toEqual([[{ reason: "User", scope: "lists" }], []]);
});

test("an address that bounced cannot be brought back by its link", async () => {
  await suppressAfterFailure(house.ctx, [{ type: "Bounce", email: PERSON, extra: "Permanent/General" }]);
  const page = await call("GET", linkFor(), undefined, BROWSER);
  expect([titleOf(page.text), page.text.includes("<form")]).toEqual(["We do not write to this address", false]);
  expect((await call("POST", `${linkFor()}/undo`, "")).text).toBe("Nothing was to be taken back.\n");
  await call("POST", `${linkFor()}/preferences`, "choose=lists&list=reminders&list=announcements");
  expect(await suppressions()).toEqual([{ reason: "Bounce", scope: "all" }]);
});

test("where leaving means all mails, the page does not promise that codes arrive", async () => {
  const strict = house.process({ config: [[settings.userSuppressionScope, "all"]] });
  const server = await buildServer(strict, [room]);
  const { pathname } = new URL(linkFor());
  const left = await server.inject({ method: "POST", url: pathname, headers: BROWSER });
  expect(left.body).toContain("No more mails");
  expect(left.body).not.toContain("sign-in codes");
  expect(await suppressions()).toEqual([{ reason: "User", scope: "all" }]);
  await server.close();
});

test("edited links get a page for people and are counted by client over all routes", async () => {
  const edited = `${linkFor().slice(0, -4)}AAAA`;
  const page = await call("GET", edited, undefined, BROWSER);
  expect([page.status, titleOf(page.text)]).toEqual([404, "This link does not work"]);
  expect(JSON.parse((await call("POST", edited, "")).text)).toMatchObject({ type: "invalid_unsubscribe_token" });
  for (let guess = 0; guess < 18; guess++) await call("POST", `${edited}/undo`, "");
  const refused = await call("GET", edited, undefined, BROWSER);
  expect([refused.status, titleOf(refused.text)]).toEqual([429, "Too many tries"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await call("GET", linkFor(), undefined, BROWSER)).status).toBe(200);
});

test("guesses from all addresses of one IPv6 network are counted together, those of another apart", async () => {
  const server = await buildServer(house.ctx, [room]);
  const { pathname } = new URL(`${linkFor().slice(0, -4)}AAAA`);
  const guess = async (remoteAddress: string) =>
    (await server.inject({ method: "POST", url: pathname, remoteAddress })).statusCode;
  const statuses: number[] = [];
  for (let host = 1; host <= 21; host++) statuses.push(await guess(`2001:db8:1:2::${host.toString(16)}`));
  expect(statuses).toEqual([...Array(20).fill(404), 429]);
  expect([await guess("2001:db8:1:3::1"), await guess("::1"), await guess("::ffff:10.0.0.1")]).toEqual([404, 404, 404]);
  await server.close();
});

test("while the database is away people may read, and are told that their wish was not written down", async () => {
  const mortal = new MortalSql(house.ctx.sql);
  mortal.dead = true;
  const lost = Object.create(house.ctx, { sql: { value: mortal } }) as typeof house.ctx;
  const server = await buildServer(lost, [room]);
  const { pathname } = new URL(linkFor());
  const page = await server.inject({ url: pathname, headers: BROWSER });
  expect([page.statusCode, page.body.includes("Unsubscribe from everything")]).toEqual([200, true]);
  for (const path of [pathname, `${pathname}/undo`]) {
    const wish = await server.inject({ method: "POST", url: path, headers: BROWSER });
    expect([wish.statusCode, wish.headers["retry-after"], titleOf(wish.body)]).toEqual([
      503,
      "60",
      "That did not work just now",
    ]);
  }
  expect((await server.inject({ method: "POST", url: pathname })).json()).toMatchObject({
    type: "unsubscribe_unavailable",
  });
  await server.close();
});
