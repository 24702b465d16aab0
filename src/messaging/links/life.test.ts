import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { CodeMaker } from "./codes.ts";
import { abandonLinks, queuePersist } from "./fate.ts";
import { delayedClickPersist, leakedLinkDetection, persistLink } from "./jobs.ts";
import { keys } from "./keys.ts";
import { type LinksHouse, openLinks, PERSON } from "./links.fixture.ts";
import { createLinks } from "./service.ts";

let house: LinksHouse;
let ada: string;
beforeAll(async () => {
  house = await openLinks({ start: 1_790_000_000 });
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches");
  ada = await house.person("ada");
});

const rows = () =>
  house.query<object>(`
    select click.uid, click.track_type, parent.uid as parent, click.child_known, click.user_known
    from user_touch_link_clicks as click left join user_touch_link_clicks as parent on parent.id = click.parent_id
    order by click.id`);
const stored = async () =>
  (await house.query<{ code: string }>("select code from user_touch_links order by id")).map(({ code }) => code);
const inRedis = async () => (await house.ctx.redis.commands.keys("touch_links:*")).sort();
const postLogin = (code: string, uid: string) =>
  house.call("POST", "/api/1/notifications/post_login", { token: ada, body: { code, uid }, headers: PERSON });
const complete = (code: string) =>
  house.call("POST", "/api/1/notifications/complete", { token: "", body: { code }, headers: PERSON });

test("a link works the moment it is made, and is stored with its click half an hour after its message arrived", async () => {
  const { code, touchUid, url, shortUrl } = await house.link({ codeStyle: "short" });
  expect([url, shortUrl, code.length]).toEqual([`https://example.test/l/${code}`, `example.test/l/${code}`, 4]);
  const answer = await complete(code);
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    { page_identifier: "home", page_extra: {}, click_uid: expect.stringMatching(/^crl_utlc_/) },
  ]);
  expect(await stored()).toEqual([]);
  await house.arrive(touchUid);
  expect(await queuePersist(house.ctx, [code, code, "nobody"])).toEqual(["queued", "duplicated", "dropped"]);
  await house.base.clock.advance(1_799);
  await house.run(persistLink);
  expect(await stored()).toEqual([]);
  await house.base.clock.advance(1);
  await house.run(persistLink);
  expect(await stored()).toEqual([code]);
  expect(await rows()).toMatchObject([{ track_type: "on_click", child_known: false }]);
  expect(await inRedis()).toEqual([]);
  expect((await complete(code)).json().page_identifier).toBe("home");
  expect(await house.statistics()).toEqual({
    events: {
      created: 1,
      persist_queue_attempts: 3,
      persist_queue_failed: 2,
      persists_queued: 1,
      persisted: 1,
      persisted_clicks: 1,
      click_attempts: 2,
      clicks_buffered: 1,
      clicks_direct_to_db: 1,
    },
    words: {
      persist_queue_failed: { "home:duplicated": 1, "unknown:dropped": 1 },
      persists_queued: { home: 1 },
      persisted: { home: 1 },
      persisted_clicks: { "home:1": 1 },
      clicks_buffered: { "on_click:home:vis=False:user=False": 1 },
      clicks_direct_to_db: { "on_click:home:vis=False:user=False": 1 },
    },
  });
  const last = await house.call("GET", "/api/1/admin/touch/last_persist_link_job");
  expect(last.json()).toMatchObject({ attempted: 1, persisted: 1, persisted_with_one_click: 1, integrity_error: 0 });
  await house.audit();
});

test("codes are as long as their style says, and a link that ends a subscription cannot be guessed", async () => {
  const styles = ["short", "normal", "long"] as const;
  const made = await createLinks(
    house.ctx,
    styles.map((codeStyle) => ({ touchUid: "crl_tch_a", page: { identifier: "home" }, codeStyle })),
  );
  expect(made.map(({ code }) => code.length)).toEqual([4, 22, 86]);
});

test("short codes that are taken in SQL or in the buffer are not given out again, and each link counts once", async () => {
  const { code, touchUid } = await house.link();
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  // As if every short code of three bytes but this one were rare: it is offered first.
  const many = await createLinks(
    house.ctx,
    Array.from({ length: 300 }, () => ({
      touchUid: "crl_tch_many",
      page: { identifier: "home" },
      codeStyle: "short" as const,
    })),
  );
  expect(new Set(many.map((link) => link.code)).size).toBe(300);
  expect((await house.statistics()).events.created).toBe(301);
  await house.audit();
});

test("a process that dies while it looks for a free code leaves as many links counted as there are", async () => {
  let taken = "";
  const offers = vi.spyOn(CodeMaker.prototype, "next");
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await house.clear("user_touches");
      await house.person("ada");
      offers.mockReset();
      const { code, touchUid } = await house.link();
      taken = code;
      await house.arrive(touchUid);
      await queuePersist(house.ctx, [code]);
      await house.base.clock.advance(1_800);
      await house.run(persistLink);
      offers.mockReturnValueOnce(taken);
    },
    life: async (redis) => {
      const wish = { touchUid: "crl_tch_next", page: { identifier: "home" }, codeStyle: "short" as const };
      await createLinks(house.process({ redis }), [wish]);
    },
    afterlife: async () => {
      const waiting = await house.ctx.redis.commands.zcard(keys.buffer());
      expect((await house.statistics()).events.created).toBe(1 + waiting);
    },
  });
  offers.mockRestore();
  expect(deaths).toBeGreaterThan(4);
});

test("a page or preview that nobody declared is refused before anything is made", async () => {
  const wish = (page: object, preview?: object) =>
    createLinks(house.ctx, [{ touchUid: "crl_tch_a", page, ...(preview ? { preview } : {}) } as never]);
  await expect(wish({ identifier: "nowhere" })).rejects.toThrow("no page nowhere");
  await expect(wish({ identifier: "home", extra: { a: 1 } })).rejects.toThrow("page home");
  await expect(wish({ identifier: "home" }, { identifier: "unsubscribe" })).rejects.toThrow("preview unsubscribe");
  expect(await inRedis()).toEqual([]);
});

test("a link whose message failed is forgotten with its clicks, and its code leads nowhere", async () => {
  const { code } = await house.link();
  await house.click(code);
  await house.base.clock.advance(4);
  await house.click(code);
  expect(await abandonLinks(house.ctx, [code, code])).toEqual(["abandoned", "dne"]);
  await house.base.clock.advance(6);
  expect((await complete(code)).statusCode).toBe(404);
  expect((await inRedis()).filter((name) => !name.includes("ratelimit"))).toEqual([]);
  const { events, words } = await house.statistics();
  expect(words.abandoned).toEqual({ "home:2": 1 });
  expect(words.abandon_failed).toEqual({ dne: 1 });
  expect([events.abandons_attempted, words.clicks_failed]).toEqual([2, { dne: 1 }]);
  await house.audit();
});

test("a link that is about to be stored can no longer be given up", async () => {
  const { code, touchUid } = await house.link();
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  expect(await abandonLinks(house.ctx, [code])).toEqual(["already_persisting"]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect(await stored()).toEqual([code]);
});

test("whoever signs in right after a click is kept under it once, and so it is stored", async () => {
  const { code, touchUid } = await house.link();
  const uid = await house.click(code);
  expect((await postLogin(code, uid)).statusCode).toBe(202);
  expect((await postLogin(code, uid)).statusCode).toBe(202);
  expect((await postLogin(code, "crl_utlc_aaaaaaaaaaaaaaaaaaaaaa")).statusCode).toBe(202);
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  await house.audit();
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect(await rows()).toEqual([
    { uid, track_type: "on_click", parent: null, child_known: true, user_known: false },
    { uid: expect.any(String), track_type: "post_login", parent: uid, child_known: false, user_known: true },
  ]);
  expect((await postLogin(code, uid)).statusCode).toBe(202);
  const { words } = await house.statistics();
  expect(words.clicks_failed).toEqual({
    "post_login:home:buffer:parent_has_child": 1,
    "post_login:home:buffer:parent_not_found": 1,
    "post_login:home:db:parent_has_child": 1,
  });
  expect(words.persisted_clicks).toEqual({ "home:2": 2 });
});

test("after a link is stored, whoever signs in is kept under a stored click of that very link", async () => {
  const [one, other] = [await house.link(), await house.link()];
  for (const { touchUid } of [one, other]) await house.arrive(touchUid);
  await queuePersist(house.ctx, [one.code, other.code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  const uid = await house.click(one.code);
  await postLogin(other.code, uid);
  expect((await rows()).length).toBe(1);
  await Promise.all([postLogin(one.code, uid), postLogin(one.code, uid)]);
  expect((await rows()).map((row) => (row as { parent: string | null }).parent)).toEqual([null, uid]);
  expect((await house.statistics()).words.clicks_failed).toEqual({
    "post_login:home:db:parent_has_child": 1,
    "post_login:home:db:parent_not_found": 1,
  });
  await house.audit();
});

/** A link in the middle of being stored: its job died after the claim. */
async function storing(code: string): Promise<void> {
  const { commands } = house.ctx.redis;
  await commands.zrem(keys.toPersist(), code);
  await commands.zadd(keys.persistPurgatory(), house.ctx.clock.now(), code);
}

test("clicks that come while their link is being stored wait, and are stored after it with who signed in", async () => {
  const { code, touchUid } = await house.link();
  const before = await house.click(code);
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  await storing(code);
  await house.base.clock.advance(4);
  const during = await house.click(code);
  await postLogin(code, before);
  await postLogin(code, during);
  await postLogin(code, during);
  expect(await house.length(keys.delayed())).toBe(3);
  await house.audit();
  await house.base.clock.advance(1_800);
  await house.run(delayedClickPersist);
  // The job that stores links is behind, so they wait on.
  expect([await rows(), await house.length(keys.delayed())]).toEqual([[], 3]);
  await house.run(persistLink);
  await house.base.clock.advance(600);
  await house.run(delayedClickPersist);
  const parents = (await rows()).map((row) => (row as { parent: string | null }).parent);
  expect(new Set(parents.slice(2))).toEqual(new Set([before, during]));
  expect(parents.slice(0, 2)).toEqual([null, null]);
  expect((await inRedis()).filter((name) => !name.includes("ratelimit"))).toEqual([]);
  const { events, words } = await house.statistics();
  expect([events.delayed_clicks_attempted, events.delayed_clicks_delayed]).toEqual([6, 3]);
  expect(words.delayed_clicks_persisted).toEqual({
    "on_click:home:vis=False:user=False": 1,
    "post_login:home:vis=False:user=True": 2,
  });
  await house.audit();
});

test("a sign-in whose click still waits waits too, although the link is stored already", async () => {
  const { code, touchUid } = await house.link();
  await house.arrive(touchUid);
  await queuePersist(house.ctx, [code]);
  await storing(code);
  const during = await house.click(code);
  await house.run(persistLink);
  await postLogin(code, during);
  expect(await rows()).toEqual([]);
  await house.base.clock.advance(1_800);
  await house.run(delayedClickPersist);
  expect((await rows()).map((row) => (row as { parent: string | null }).parent)).toEqual([null, during]);
});

test("a link whose touch is not logged yet keeps working and is stored when it is", async () => {
  const { code, touchUid } = await house.link();
  await queuePersist(house.ctx, [code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect(await stored()).toEqual([]);
  expect((await complete(code)).statusCode).toBe(200);
  expect((await house.statistics()).words.persists_failed).toEqual({ integrity: 1 });
  const last = (await house.call("GET", "/api/1/admin/touch/last_persist_link_job")).json();
  expect([last.integrity_error, last.persisted_without_clicks]).toEqual([1, -1]);
  await house.arrive(touchUid);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect(await stored()).toEqual([code]);
  await house.audit();
});

test("links that nobody claimed are cleared away at their age, and stored if their touch did arrive", async () => {
  const [lost, arrived] = [await house.link(), await house.link()];
  await house.arrive(arrived.touchUid);
  const uid = await house.click(arrived.code);
  await house.base.clock.advance(143_000);
  await house.run(leakedLinkDetection);
  expect(await house.length(keys.buffer())).toBe(2);
  await house.base.clock.advance(1_001);
  await house.run(leakedLinkDetection);
  expect(await stored()).toEqual([arrived.code]);
  expect(await rows()).toMatchObject([{ uid }]);
  expect(await inRedis()).toEqual([]);
  expect((await complete(lost.code)).statusCode).toBe(404);
  expect((await house.statistics()).words.leaked).toEqual({ abandoned: 1, recovered: 1 });
  const last = (await house.call("GET", "/api/1/admin/touch/last_leaked_link_detection_job")).json();
  expect(last).toMatchObject({ leaked: 2, recovered: 1, abandoned: 1 });
  await house.audit();
});

test("a link that is stored and was left in the buffer by a death counts as duplicate and loses no click", async () => {
  const { code, touchUid } = await house.link();
  const first = await house.click(code);
  await house.arrive(touchUid);
  const hash = await house.ctx.redis.commands.hgetall(keys.link({ code }));
  await queuePersist(house.ctx, [code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  await house.ctx.redis.commands.zadd(keys.buffer(), hash.created_at!, code);
  await house.ctx.redis.commands.hset(keys.link({ code }), hash);
  await house.base.clock.advance(4);
  const second = await house.click(code);
  await house.base.clock.advance(144_000);
  await house.run(leakedLinkDetection);
  expect((await rows()).map((row) => (row as { uid: string }).uid)).toEqual([first, second]);
  expect((await house.statistics()).words.leaked).toEqual({ duplicate: 1 });
});

test("ten links in good groups count as stored, and their clicks by how many each had", async () => {
  const made = await Promise.all(Array.from({ length: 10 }, () => house.link()));
  for (const { touchUid } of made) await house.arrive(touchUid);
  for (const [at, { code }] of made.entries())
    for (let times = 0; times < [0, 0, 0, 0, 0, 1, 1, 1, 2, 2][at]!; times++) {
      await house.click(code);
      await house.base.clock.advance(4);
    }
  await queuePersist(
    house.ctx,
    made.map(({ code }) => code),
  );
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  const { events, words } = await house.statistics();
  expect([events.persisted, events.persisted_clicks]).toEqual([10, 7]);
  expect(words.persisted_clicks).toEqual({ "home:1": 3, "home:2": 4 });
  await house.audit();
});
