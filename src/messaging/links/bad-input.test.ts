import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { statisticsDomain } from "../../insight/statistics/index.ts";
import { calendarOf, readDayAsIs } from "../../mechanisms/dated-counters/index.ts";
import { emailSettings } from "../email/service.ts";
import { createLinks } from "./create.ts";
import { abandonLinks, queuePersist } from "./fate.ts";
import { unsubscribePage } from "./html.ts";
import { links } from "./index.ts";
import { delayedClickPersist, leakedLinkDetection, persistLink, persistLinksCallback } from "./jobs.ts";
import { keys } from "./keys.ts";
import { type LinksHouse, openLinks, PERSON } from "./links.fixture.ts";
import { linkStats } from "./stats.ts";
import { unsubscribeByCode } from "./unsubscribe.ts";

let house: LinksHouse;
let ada: string;
beforeAll(async () => {
  house = await openLinks({ start: 1_790_000_000 });
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches", "suppressed_emails", "unsubscribed_emails_log", "touch_link_stats");
  ada = await house.person("ada");
});

const redis = () => house.ctx.redis.commands;
const post = (path: string, body: object, token = "") =>
  house.call("POST", `/api/1/notifications/${path}`, { token, body, headers: PERSON });
const outcome = (answer: { statusCode: number; body: string }) => [answer.statusCode, JSON.parse(answer.body).type];
const suppressed = async () =>
  (await house.query<{ email_address: string }>("select email_address from suppressed_emails order by 1")).map(
    ({ email_address }) => email_address,
  );

test("codes that are none are refused without touching a key", async () => {
  for (const code of ["", "x".repeat(256), "a b", "../etc", "a:b"]) {
    expect((await post("complete", { code })).statusCode).toBe(422);
    expect((await post("post_login", { code, uid: "crl_utlc_aaaaaaaaaaaaaaaaaaaaaa" }, ada)).statusCode).toBe(422);
    expect((await post("unsubscribe_by_email", { code, email: "a@example.com" })).statusCode).toBe(422);
  }
  expect((await post("post_login", { code: "abcd", uid: "nonsense" }, ada)).statusCode).toBe(422);
  expect((await post("complete", { code: "abcd", more: 1 })).statusCode).toBe(422);
  expect(await redis().keys("touch_links:*")).toEqual([]);
});

test("a code that nobody made is not found, and counts as such", async () => {
  expect(outcome(await post("complete", { code: "nobody" }))).toEqual([404, "link_not_found"]);
  const { events, words } = await house.statistics();
  expect([events.click_attempts, words.clicks_failed]).toEqual([1, { dne: 1 }]);
  expect(outcome(await post("post_login", { code: "nobody", uid: "crl_utlc_aaaaaaaaaaaaaaaaaaaaaa" }))).toEqual([
    401,
    "credential_missing",
  ]);
});

test("only administrators look at links, and everybody may follow them", async () => {
  const { code } = await house.link();
  for (const { method, path, access } of links.routes.filter((each) => each.path.startsWith("/api/1/admin"))) {
    expect([path, access]).toEqual([path, "admin"]);
    for (const [token, status] of [
      ["", 401],
      [ada, 403],
    ] as const)
      expect([path, (await house.call(method, path.replace("{code}", code), { token })).statusCode]).toEqual([
        path,
        status,
      ]);
  }
  for (const job of ["last_persist_link_job", "last_leaked_link_detection_job", "last_delayed_click_persist_job"])
    expect(outcome(await house.call("GET", `/api/1/admin/touch/${job}`))).toEqual([404, "links_run_not_finished"]);
});

test("what waits can be looked at: links, those to be stored, and clicks, wherever they are", async () => {
  const info = async (path: string) => (await house.call("GET", `/api/1/admin/touch/${path}`)).json();
  const { code } = await house.link();
  const at = house.ctx.clock.now();
  expect(await info("buffered_link_sorted_set_info")).toEqual({ length: 1, oldest_score: at });
  await queuePersist(house.ctx, [code]);
  const schedule = {
    length: 1,
    oldest_score: at + 1_800,
    num_overdue: 0,
    num_in_purgatory: 0,
    min_purgatory_score: null,
  };
  expect(await info("persistable_buffered_link_sorted_set_info")).toEqual(schedule);
  expect((await info(`links/${code}`)).state).toBe("persistable");
  const first = await house.click(code);
  await redis().zrem(keys.toPersist(), code);
  await redis().zadd(keys.persistPurgatory(), at, code);
  await house.base.clock.advance(4);
  const second = await house.click(code);
  const view = await info(`links/${code}`);
  expect([view.state, view.link.page_identifier]).toEqual(["persisting", "home"]);
  expect(view.clicks.map(({ uid, kept }: { uid: string; kept: string }) => [uid, kept])).toEqual([
    [first, "buffer"],
    [second, "delayed"],
  ]);
  expect(await info("delayed_link_clicks_sorted_set_info")).toMatchObject({ length: 1, oldest_score: at + 1_804 });
  expect(await info("links/nobody")).toMatchObject({ state: "gone", link: null, clicks: [] });
});

test("a click whose link is being stored for two hours is looked at every ten minutes and never lost", async () => {
  const { code, touchUid } = await house.link();
  await house.arrive(touchUid);
  await redis().zadd(keys.persistPurgatory(), house.ctx.clock.now(), code);
  const uid = await house.click(code);
  await house.base.clock.advance(1_800);
  for (let times = 0; times < 9; times++) {
    await house.run(delayedClickPersist);
    expect(Number(await redis().zscore(keys.delayed(), uid))).toBe(house.ctx.clock.now() + 600);
    await house.base.clock.advance(600);
  }
  await house.run(persistLink);
  await house.run(delayedClickPersist);
  expect(await house.query("select uid from user_touch_link_clicks")).toEqual([{ uid }]);
  expect((await house.statistics()).events).toMatchObject({
    delayed_clicks_attempted: 10,
    delayed_clicks_delayed: 9,
    delayed_clicks_persisted: 1,
  });
  await house.audit();
});

test("a waiting click that cannot be read is lost with a warning, and one that is stored already is a duplicate", async () => {
  const { code, touchUid } = await house.link();
  await house.arrive(touchUid);
  await redis().zadd(keys.persistPurgatory(), house.ctx.clock.now(), code);
  const uid = await house.click(code);
  const hash = await redis().hgetall(keys.delayedClick({ uid }));
  await house.run(persistLink);
  await house.base.clock.advance(1_800);
  await house.run(delayedClickPersist);
  // As a death between SQL and Redis leaves it.
  await redis().hset(keys.delayedClick({ uid }), hash);
  await redis().zadd(keys.delayed(), 1, uid, 1, "crl_utlc_bbbbbbbbbbbbbbbbbbbbbb");
  await house.run(delayedClickPersist);
  expect((await house.statistics()).words.delayed_clicks_failed).toEqual({ duplicate: 1, lost: 1 });
  const last = (await house.call("GET", "/api/1/admin/touch/last_delayed_click_persist_job")).json();
  expect(last).toMatchObject({ attempted: 2, persisted: 0, delayed: 0, lost: 1, duplicate: 1 });
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "touch_links:click_lost")).toBe(true);
});

test("a callback that runs twice does no harm, whichever it is", async () => {
  const { code } = await house.link();
  await house.run(persistLinksCallback, house.ctx, { codes: [code] });
  await house.run(persistLinksCallback, house.ctx, { codes: [code] });
  expect(await abandonLinks(house.ctx, [code])).toEqual(["already_persisting"]);
  expect((await house.statistics()).words.persist_queue_failed).toEqual({ "home:duplicated": 1 });
  await house.audit();
});

test("a link whose hash is lost, or whose code another one has in SQL, is cleared away and counted", async () => {
  const [lost, taken, good] = [await house.link(), await house.link(), await house.link()];
  for (const { touchUid } of [taken, good]) await house.arrive(touchUid);
  await house.query(
    `insert into user_touch_links (uid, user_touch_id, code, page_identifier, page_extra, preview_identifier, preview_extra, created_at)
     select 'crl_utl_other', id, '${taken.code}', 'home', '{}', 'default', '{}', now() from user_touches limit 1`,
  );
  await queuePersist(house.ctx, [lost.code, taken.code, good.code]);
  await redis().del(keys.link({ code: lost.code }));
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  const { words, events } = await house.statistics();
  expect(words.persists_failed).toEqual({ lost: 1, integrity: 1 });
  expect([events.persisted, events.persisted_in_failed_batch]).toEqual([undefined, 1]);
  const last = (await house.call("GET", "/api/1/admin/touch/last_persist_link_job")).json();
  expect(last).toMatchObject({ attempted: 3, lost: 1, integrity_error: 1, persisted: 1, persisted_with_one_click: -1 });
  expect(await house.length(keys.buffer())).toBe(0);
  await house.audit();
});

test("short codes grow when too many in a row are taken, and people are told when even long ones are", async () => {
  const crowded = house.process({ redis: house.base.server.connect(house.base.clock) });
  const { run } = crowded.redis;
  let refusals = 12;
  const asked: string[] = [];
  /** Refuses codes as if other links had them. */
  const busy = async (...call: Parameters<typeof run>) => {
    const [script, , items] = call;
    if (script.name !== "touch_links.create" || refusals-- <= 0) return run.apply(crowded.redis, call);
    asked.push((items as readonly unknown[]).find((item) => typeof item === "string") as string);
    return [false];
  };
  Object.assign(crowded.redis, { run: busy });
  const wish = { touchUid: "crl_tch_crowd", page: { identifier: "home" }, codeStyle: "short" as const };
  const [link] = await createLinks(crowded, [wish]);
  expect(asked.map(({ length }) => length)).toEqual([...Array(6).fill(4), ...Array(6).fill(6)]);
  expect(link!.code).toHaveLength(7);
  expect((await house.statistics()).events.created).toBe(1);
  // The length that was needed is needed from now on.
  expect((await createLinks(crowded, [wish]))[0]!.code).toHaveLength(7);
  refusals = 1_000;
  await expect(createLinks(crowded, [wish])).rejects.toMatchObject({
    status: 500,
    message: expect.stringContaining("No free short code"),
  });
  expect(crowded.alerts.recorded).toMatchObject([{ identifier: "touch_links:codes_exhausted" }]);
});

test("a visitor that nobody knows is kept with the click as what was said", async () => {
  const { code, touchUid } = await house.link();
  const headers = { ...PERSON, visitor: "crl_v_unknown" };
  await house.call("POST", "/api/1/notifications/complete", { token: ada, body: { code }, headers });
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect(await house.query("select visitor_id, visitor_known, user_known from user_touch_link_clicks")).toEqual([
    { visitor_id: null, visitor_known: false, user_known: true },
  ]);
  expect((await house.statistics()).words.clicks_buffered).toEqual({ "on_click:home:vis=True:user=True": 1 });
});

test("a limit that lost its end gets one with the next use, and the audit tells of it", async () => {
  const { code } = await house.link();
  await redis().set(keys.codeLimit({ code }), 1);
  await redis().set(keys.signedOutLimit(), 3);
  await expect(house.audit()).rejects.toThrow("touch_links:limits_end");
  await house.click(code);
  expect(await redis().pttl(keys.codeLimit({ code }))).toBeGreaterThan(0);
  expect(await redis().pttl(keys.signedOutLimit())).toBeGreaterThan(0);
  await house.audit();
});

test("the button of a mailbox ends the mails to every address that its mail went to, and a link of another page does not", async () => {
  const { code, touchUid } = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  const other = await house.link();
  const press = (which: string) =>
    house.call("POST", `/api/1/notifications/one_click/${which}`, {
      token: "",
      body: "List-Unsubscribe=One-Click",
      headers: { ...PERSON, "content-type": "application/x-www-form-urlencoded" },
    });
  expect(outcome(await press(other.code))).toEqual([403, "invalid_code"]);
  await house.arrive(touchUid, "Ada@Example.com");
  await house.arrive(touchUid, "second@example.com");
  expect([(await press(code)).statusCode, (await press(code)).statusCode]).toEqual([202, 202]);
  expect((await suppressed()).map((address) => address.toLowerCase())).toEqual([
    "ada@example.com",
    "second@example.com",
  ]);
  expect(await house.query("select 1 from unsubscribed_emails_log where suppressed")).toHaveLength(2);
});

test("who tries codes for leaving too often is told when to come back, and a code that is known is still taken", async () => {
  const { code, touchUid } = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  await house.arrive(touchUid, "ada@example.com");
  await redis().set(keys.signedOutLimit(), 500, "EX", 5);
  const guess = await post("unsubscribe_by_email", { code: "guess", email: "ada@example.com" });
  expect([...outcome(guess), guess.headers["retry-after"]]).toEqual([429, "too_many_uses", "5"]);
  expect((await post("unsubscribe_by_email", { code, email: "ada@example.com" })).statusCode).toBe(202);
  expect(await suppressed()).toEqual(["ada@example.com"]);
});

test("one code takes ten addresses for leaving an hour, by form or not, and the button of a mailbox is not counted", async () => {
  const { code, touchUid } = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  const other = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  await house.arrive(touchUid, "ada@example.com");
  const leave = (email: string, which = code) => post("unsubscribe_by_email", { code: which, email });
  for (let guess = 0; guess < 9; guess++)
    expect(outcome(await leave(`guess-${guess}@example.com`))).toEqual([403, "email_mismatch"]);
  const form = (path = "unsubscribe") =>
    house.call("POST", `/l/${code}/${path}`, {
      token: "",
      body: "email=ada%40example.com",
      headers: { ...PERSON, "content-type": "application/x-www-form-urlencoded" },
    });
  expect((await form()).statusCode).toBe(200);
  await house.base.clock.advance(600);
  const refused = await leave("ada@example.com");
  expect([...outcome(refused), refused.headers["retry-after"]]).toEqual([429, "too_many_leaves", "3000"]);
  for (const path of ["unsubscribe", "unsubscribe/undo"]) {
    const page = await form(path);
    expect([page.statusCode, page.headers["retry-after"]]).toEqual([429, "3000"]);
  }
  // Others go on: another code, and mailboxes, which name no address. Codes that nobody made leave no count behind.
  expect((await leave("ada@example.com", other.code)).statusCode).toBe(202);
  expect((await post(`one_click/${code}`, {})).statusCode).toBe(202);
  expect(outcome(await leave("ada@example.com", "guess"))).toEqual([403, "invalid_code"]);
  expect(await redis().exists(keys.leavingLimit({ code: "guess" }))).toBe(0);
  await house.base.clock.advance(3000);
  expect((await leave("ada@example.com")).statusCode).toBe(202);
});

test("an address that nobody owns is suppressed all the same, and a repeat changes nothing", async () => {
  const { code, touchUid } = await house.link({ page: { identifier: "unsubscribe" }, codeStyle: "long" });
  await house.arrive(touchUid, "nobody@example.com");
  for (let times = 0; times < 2; times++)
    expect((await post("unsubscribe_by_email", { code, email: "nobody@example.com" })).statusCode).toBe(202);
  expect(await suppressed()).toEqual(["nobody@example.com"]);
  expect(await house.query("select suppressed from unsubscribed_emails_log order by id")).toEqual([
    { suppressed: true },
    { suppressed: false },
  ]);
});

test("whoever leaves with a link leaves what the installation says: lists, or all mails", async () => {
  const leaving = { page: { identifier: "unsubscribe" }, codeStyle: "long" as const };
  for (const scope of ["lists", "all"] as const) {
    const { code, touchUid } = await house.link(leaving);
    await house.arrive(touchUid, `${scope}@example.com`);
    const ctx = house.process({ settings: [[emailSettings.userSuppressionScope, scope]] });
    await unsubscribeByCode(ctx, { code, email: `${scope}@example.com` });
    const { body } = unsubscribePage(ctx, code, { kind: "left", email: `${scope}@example.com` });
    expect(String(body).includes("sign-in codes, still arrive")).toBe(scope === "lists");
  }
  expect(await house.query("select email_address, scope, reason from suppressed_emails order by id")).toEqual([
    { email_address: "lists@example.com", scope: "lists", reason: "User" },
    { email_address: "all@example.com", scope: "all", reason: "User" },
  ]);
});

test("a link counts on the day it was made while that day is open, and later on the oldest open one", async () => {
  const calendar = calendarOf(house.ctx);
  const day = calendar.unixDate(house.ctx.clock.now()) + 1;
  const on = async (date: number) => (await readDayAsIs(house.ctx, linkStats, date)).events;
  await house.base.clock.advance(calendar.startOf(day) + 22 * 3_600 - house.ctx.clock.now());
  const { code } = await house.link();
  await house.click(code);
  await house.base.clock.advance(3 * 3_600);
  await queuePersist(house.ctx, [code]);
  expect(await on(day)).toMatchObject({ created: "1", clicks_buffered: "1", persists_queued: "1" });
  expect(await on(day + 1)).toEqual({});
  // Nobody logs its touch; it leaks on the second day after, when its own day is a row already.
  const rotate = statisticsDomain(() => [links]).runners!.find(({ name }) => name === "runners.stats.rotate")!;
  await house.base.clock.advance(calendar.startOf(day + 2) + 2 * 3_600 - house.ctx.clock.now());
  const before = await on(day);
  await house.run(rotate, house.ctx, { family: "touch_links" });
  expect(await on(day)).toEqual({});
  const [row] = await house.query<Record<string, unknown>>("select * from touch_link_stats");
  expect(row).toMatchObject({ created: Number(before.created), clicks_buffered: 1 });
  expect(row!.clicks_buffered_breakdown).toEqual({ "on_click:home:vis=False:user=False": 1 });
  expect(await redis().get(linkStats.earliest())).toBe(String(day + 1));
  await house.base.clock.advance(calendar.startOf(day + 2) + 15 * 3_600 - house.ctx.clock.now());
  await house.run(leakedLinkDetection);
  expect([await on(day), (await on(day + 1)).leaked]).toEqual([{}, "1"]);
});
