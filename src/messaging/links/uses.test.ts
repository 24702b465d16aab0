import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { cacheSettings } from "../../mechanisms/layered-cache/settings.ts";
import { abandonLinks, queuePersist } from "./fate.ts";
import { follow, followedBySignIn } from "./follow.ts";
import { delayedClickPersist, leakedLinkDetection, persistLink } from "./jobs.ts";
import { keys } from "./keys.ts";
import { type LinksHouse, openLinks, PERSON } from "./links.fixture.ts";
import { catchUp } from "./outage.ts";
import { robotRule } from "./robots.ts";
import { settings } from "./settings.ts";
import { deskOf, newUse } from "./uses.ts";

let house: LinksHouse;
const folder = mkdtempSync(join(tmpdir(), "clicks-"));
beforeAll(async () => {
  house = await openLinks({ start: 1_790_000_000 });
});
afterAll(async () => {
  await house.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await house.clear("user_touches");
  await house.person("ada");
});

const complete = (code: string, headers: Record<string, string> = PERSON) =>
  house.call("POST", "/api/1/notifications/complete", { token: "", body: { code }, headers });
const fetchPage = (path: string, headers: Record<string, string> = PERSON, method = "GET") =>
  house.call(method, path, { token: "", headers });
const clickRows = async () =>
  (await house.query<{ uid: string }>("select uid from user_touch_link_clicks order by uid")).map(({ uid }) => uid);

async function storedLink() {
  const link = await house.link();
  await house.arrive(link.touchUid);
  await queuePersist(house.ctx, [link.code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  return link;
}

test("of five clicks on one code within three seconds one is kept, and all are answered", async () => {
  for (const { code } of [await house.link(), await storedLink()]) {
    const answers = await Promise.all(Array.from({ length: 5 }, () => complete(code)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200, 200]);
  }
  const { events, words } = await house.statistics();
  expect([events.click_attempts, events.clicks_buffered, events.clicks_direct_to_db]).toEqual([10, 1, 1]);
  expect(words.clicks_failed).toEqual({ "on_click:home:buffer:too_soon": 4, "on_click:home:db:too_soon": 4 });
  expect(await clickRows()).toHaveLength(1);
  await house.audit();
});

test("who guesses codes too often is dropped, mostly with a refusal and sometimes with a lie; known codes go on", async () => {
  const ctx = house.process({ settings: [[settings.signedOutLimit, 100]] });
  const { code } = await house.link();
  const person = { method: "POST", headers: PERSON, userSub: undefined };
  const guesses = await Promise.allSettled(Array.from({ length: 500 }, (_, at) => follow(ctx, `guess-${at}`, person)));
  const lies = guesses.filter(({ status }) => status === "fulfilled").length;
  expect(lies).toBeGreaterThan(10);
  expect(lies).toBeLessThan(90);
  expect((await follow(ctx, code, person)).page_identifier).toBe("home");
  const signedIn = deskOf(ctx).take(newUse(ctx, "on_click", "guess-again", { userSub: "ada" }));
  expect((await signedIn).outcome).toBe("dne");
  expect(ctx.alerts.recorded.filter(({ identifier }) => identifier === "touch_links:guessed_codes")).toHaveLength(1);
  const { words, events } = await house.statistics();
  expect(words.clicks_failed).toEqual({ dne: 100 });
  expect([events.click_attempts, events.clicks_buffered]).toEqual([101, 1]);
  const { commands } = ctx.redis;
  expect(await commands.ttl(keys.warningLimit())).toBeGreaterThan(0);
  expect(await commands.ttl(keys.signedOutLimit())).toBeLessThanOrEqual(5);
  await house.base.clock.advance(5.1);
  await expect(follow(ctx, "guess-later", person)).rejects.toThrow("no link with this code");
});

test("programs that fetch a link are no clicks, whatever they say, and are counted by the rule that knew them", async () => {
  const { code } = await house.link();
  const bots = [
    { "user-agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)" },
    { "user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)" },
    { ...PERSON, purpose: "prefetch" },
    { "user-agent": "" },
  ];
  for (const bot of bots) {
    expect((await fetchPage(`/l/${code}`, bot)).statusCode).toBe(200);
    expect((await complete(code, bot)).statusCode).toBe(200);
  }
  expect((await fetchPage(`/l/${code}`, PERSON, "HEAD")).statusCode).toBe(200);
  for (let times = 0; times < 100; times++) await fetchPage(`/l/${code}`);
  const { events } = await house.statistics();
  expect([events.click_attempts, events.robots]).toEqual([undefined, 9]);
  const view = (await house.call("GET", `/api/1/admin/touch/links/${code}`)).json();
  expect([view.state, view.clicks]).toEqual(["buffered", []]);
  expect(view.robots).toMatchObject({ ahead_of_time: 2, head: 1, no_agent: 2 });
  expect(Object.keys(view.robots).filter((rule) => rule.startsWith("agent:")).length).toBeGreaterThan(0);
  await house.audit();
});

test("people are not taken for programs", () => {
  const agents = [
    PERSON["user-agent"],
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.2 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36",
  ];
  for (const agent of agents) expect(robotRule("POST", { "user-agent": agent })).toBeUndefined();
  expect(robotRule("GET", { "user-agent": "Barracuda Sentinel (EE)" })).toBe("scanner:barracuda");
});

test("the page of a link shows its preview, escaped, and leads on; one that nobody made looks like any other", async () => {
  const { code } = await house.link({
    page: { identifier: "unsubscribe" },
    preview: { identifier: "unsubscribe", extra: { list: "daily <b>reminders</b>" } },
    codeStyle: "long",
  });
  const page = await fetchPage(`/l/${code}`);
  expect(page.headers["content-type"]).toContain("text/html");
  expect(page.headers["cache-control"]).toBe("no-store");
  expect(page.body).toContain('<meta property="og:title" content="Unsubscribe">');
  expect(page.body).toContain("daily &lt;b&gt;reminders");
  expect(page.body).not.toContain("<b>reminders");
  expect(page.body).toContain(`https://example.test/l/${code}`);
  const unknown = await fetchPage("/a/nobody");
  expect([unknown.statusCode, unknown.body.includes("og:title")]).toEqual([200, true]);
  const tags = await house.call("GET", `/api/1/notifications/preview?code=${code}`, { token: "", headers: PERSON });
  expect(tags.json()).toMatchObject({ title: "Unsubscribe", url: `https://example.test/l/${code}` });
  const sent = await house.call("POST", `/l/${code}`, { token: "", headers: PERSON });
  expect([sent.statusCode, sent.headers.location]).toEqual([303, `https://example.test/l/${code}/unsubscribe`]);
  for (const bad of [`/l/${"x".repeat(256)}`, "/l/a%20b"]) expect((await fetchPage(bad)).statusCode).toBe(422);
  expect((await complete("")).statusCode).toBe(422);
});

test("an address leaves with the code of a mail that it got, and with no other", async () => {
  const { commands } = house.ctx.redis;
  const leaving = { page: { identifier: "unsubscribe" }, codeStyle: "long" as const };
  const { code, touchUid } = await house.link(leaving);
  const other = await house.link();
  const leave = (email: string, with_: string) =>
    house.call("POST", "/api/1/notifications/unsubscribe_by_email", { token: "", body: { email, code: with_ } });
  expect((await leave("ada@example.com", other.code)).json().type).toBe("invalid_code");
  expect((await leave("ada@example.com", code)).statusCode).toBe(202);
  const suppressed = () => house.query<{ email_address: string }>("select email_address from suppressed_emails");
  expect(await suppressed()).toEqual([]);
  await expect(house.work()).rejects.toThrow("not known to have arrived");
  await house.arrive(touchUid, "Ada@Example.com");
  expect((await leave("bob@example.com", code)).json().type).toBe("email_mismatch");
  expect((await leave("ada@example.com", code)).statusCode).toBe(202);
  expect((await leave("ADA@example.com", code)).statusCode).toBe(202);
  expect((await suppressed()).map(({ email_address }) => email_address.toLowerCase())).toEqual(["ada@example.com"]);
  expect(await commands.exists(keys.clicks({ code }))).toBe(0);
  await house.query("delete from suppressed_emails");
});

test("while Redis is away a click is sent on and noted, and is counted once when it is back", async () => {
  const ctx = house.process({ settings: [[cacheSettings.folder, join(folder, "redis")]] });
  const { code } = await house.link();
  const person = { method: "POST", headers: PERSON, userSub: undefined };
  await follow(ctx, code, person);
  await house.base.clock.advance(4);
  const { run } = ctx.redis;
  Object.assign(ctx.redis, { run: () => Promise.reject(new Error("Redis is away")) });
  try {
    expect((await follow(ctx, code, person)).url).toBe("https://example.test/");
    expect((await follow(ctx, "never-seen", person)).page_identifier).toBe("home");
    await expect(catchUp(ctx)).rejects.toThrow("away");
  } finally {
    Object.assign(ctx.redis, { run });
  }
  expect(await catchUp(ctx)).toBe(2);
  expect(await catchUp(ctx)).toBe(0);
  const { events, words } = await house.statistics();
  expect([events.clicks_buffered, words.clicks_failed]).toEqual([2, { dne: 1 }]);
  await house.audit();
});

test("whoever signs in right after a click while Redis is away is kept under it, once, when it is back", async () => {
  const ctx = house.process({ settings: [[cacheSettings.folder, join(folder, "sign-ins")]] });
  const { run } = ctx.redis;
  const links = [await house.link(), await storedLink()];
  const person = { method: "POST", headers: PERSON, userSub: undefined };
  Object.assign(ctx.redis, { run: () => Promise.reject(new Error("Redis is away")) });
  try {
    // Uids are drawn by chance: of a few, some sort before their click's.
    for (let time = 0; time < 4; time++)
      for (const { code } of links) {
        const { click_uid } = await follow(ctx, code, person);
        await followedBySignIn(ctx, code, click_uid, { ...person, userSub: "ada" });
      }
  } finally {
    Object.assign(ctx.redis, { run });
  }
  expect(await catchUp(ctx)).toBe(16);
  const { events, words } = await house.statistics();
  expect([events.click_attempts, events.clicks_buffered, events.clicks_direct_to_db]).toEqual([16, 8, 8]);
  expect(words.clicks_failed).toBeUndefined();
  const rows = await house.query<{ parent_known: boolean; child_known: boolean }>(
    "select parent_known, child_known from user_touch_link_clicks order by track_type",
  );
  expect(rows.map((row) => [row.parent_known, row.child_known])).toEqual([
    ...Array(4).fill([false, true]),
    ...Array(4).fill([true, false]),
  ]);
  await house.audit();
});

test("while SQL is away a click on a stored link is sent on and noted, and is stored once when it is back", async () => {
  const person = { method: "POST", headers: PERSON, userSub: "ada" };
  // The link is looked for, then the click is stored; "after": it is, and nobody hears of it.
  for (const [dieAt, death, rows] of [
    [1, "before", 0],
    [2, "before", 0],
    [2, "after", 1],
  ] as const) {
    await house.clear("user_touches");
    await house.person("ada");
    const { code } = await storedLink();
    const place: [typeof cacheSettings.folder, string] = [cacheSettings.folder, join(folder, `sql-${dieAt}-${death}`)];
    const ctx = house.process({ sql: new MortalSql(house.base.sql, { dieAt, death }), settings: [place] });
    expect((await follow(ctx, code, person)).page_identifier).toBe("home");
    expect(await clickRows()).toHaveLength(rows);
    const healthy = house.process({ settings: [place] });
    expect(await catchUp(healthy)).toBe(1);
    expect(await clickRows()).toHaveLength(1);
    await house.base.clock.advance(6);
    await sweepDeltas(healthy);
    expect((await house.statistics()).events).toMatchObject({ click_attempts: 1, clicks_direct_to_db: 1 });
    expect(await house.query("select uid from stat_deltas")).toEqual([]);
  }
});

test("clicks of many on stored links are stored and counted once each, with who they are", async () => {
  const links = [await storedLink(), await storedLink()];
  const ctx = house.process();
  const take = (code: string, who: Parameters<typeof newUse>[3]) =>
    deskOf(ctx).take(newUse(ctx, "on_click", code, who));
  for (const round of [0, 1]) {
    const taken = await Promise.all([
      take(links[0]!.code, { userSub: "ada", visitorUid: `v-${round}` }),
      take(links[1]!.code, { userSub: "nobody" }),
      take("no-such-link", {}),
    ]);
    expect(taken.map(({ outcome }) => outcome)).toEqual(["direct_to_db", "direct_to_db", "dne"]);
    await house.base.clock.advance(4);
  }
  const { events, words } = await house.statistics();
  expect([events.click_attempts, events.clicks_direct_to_db, words.clicks_failed]).toEqual([6, 4, { dne: 2 }]);
  expect(words.clicks_direct_to_db).toEqual({
    "on_click:home:vis=True:user=True": 2,
    "on_click:home:vis=False:user=True": 2,
  });
  const rows = await house.query<{ user_known: boolean; visitor_uid: string | null }>(
    "select user_known, visitor_uid from user_touch_link_clicks order by id",
  );
  expect(rows.map((row) => [row.user_known, row.visitor_uid])).toEqual([
    [true, "v-0"],
    [false, null],
    [true, "v-1"],
    [false, null],
  ]);
  // What was counted is removed by the next group; what the last one left, by the sweep.
  expect(await house.query("select uid from stat_deltas")).toHaveLength(1);
  await house.base.clock.advance(6);
  expect(await sweepDeltas(ctx)).toBe(1);
  expect((await house.statistics()).events.click_attempts).toBe(6);
  await house.audit();
});

test("a link that is gone between being found and being clicked leaves no count", async () => {
  const { code } = await storedLink();
  const ctx = house.process();
  const click = () => deskOf(ctx).take(newUse(ctx, "on_click", code));
  expect((await click()).outcome).toBe("direct_to_db");
  await house.base.clock.advance(4);
  await house.query("delete from user_touch_links");
  expect((await click()).outcome).toBe("repeated");
  expect((await house.statistics()).events).toMatchObject({ click_attempts: 1, clicks_direct_to_db: 1 });
});

test("storing links survives a death at every command: no link or click is lost, doubled or counted twice", async () => {
  let uids: string[] = [];
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await house.clear("user_touches");
      await house.person("ada");
      uids = [];
      for (let at = 0; at < 3; at++) {
        const { code, touchUid } = await house.link();
        await house.arrive(touchUid);
        uids.push(await house.click(code));
        await queuePersist(house.ctx, [code]);
        if (at === 2) {
          await house.ctx.redis.commands.zrem(keys.toPersist(), code);
          await house.ctx.redis.commands.zadd(keys.persistPurgatory(), 1, code);
          await house.base.clock.advance(4);
          uids.push(await house.click(code));
          await house.ctx.redis.commands.zrem(keys.persistPurgatory(), code);
          await queuePersist(house.ctx, [code]);
        }
      }
      await house.base.clock.advance(1_800);
    },
    life: async (redis) => {
      const mortal = house.process({ redis });
      await house.run(persistLink, mortal);
      await house.run(delayedClickPersist, mortal);
    },
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.run(persistLink);
      await house.base.clock.advance(600);
      await house.run(delayedClickPersist);
      expect(await clickRows()).toEqual([...uids].sort());
      expect((await house.ctx.redis.commands.keys("touch_links:*")).filter((name) => !name.includes("limit"))).toEqual(
        [],
      );
      expect((await house.statistics()).events).toMatchObject({ persisted: 3, persisted_clicks: 3 });
      await house.audit();
    },
  });
  expect(deaths).toBeGreaterThan(16);
}, 120_000);

test("storing links survives a death at every statement of SQL", async () => {
  const life = async (database: MortalSql) => {
    const mortal = house.process({ sql: database });
    await house.run(persistLink, mortal);
    await house.run(leakedLinkDetection, mortal);
  };
  const prepare = async () => {
    await house.clear("user_touches");
    await house.person("ada");
    const [one, other] = [await house.link(), await house.link()];
    for (const { code, touchUid } of [one, other]) {
      await house.arrive(touchUid);
      await house.click(code);
    }
    await house.base.clock.advance(144_001);
    await queuePersist(house.ctx, [one.code]);
    await house.base.clock.advance(1_800);
  };
  await prepare();
  const whole = new MortalSql(house.base.sql);
  await life(whole);
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++)
    for (const death of ["before", "after"] as const) {
      await prepare();
      await life(new MortalSql(house.base.sql, { dieAt, death })).catch(() => {});
      await house.base.clock.advance(121);
      await house.run(persistLink);
      await house.run(leakedLinkDetection);
      expect(await clickRows()).toHaveLength(2);
      expect(await house.length(keys.buffer())).toBe(0);
      await house.audit();
    }
  expect(whole.sent).toBeGreaterThan(5);
}, 120_000);

test("clicks and callbacks in any order keep every rule of the keyspace", async () => {
  const step = fc.record({
    what: fc.constantFrom("click", "sign in", "persist", "abandon", "run", "delayed", "leaks", "wait" as const),
    which: fc.nat(2),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      await house.clear("user_touches");
      await house.person("ada");
      const made = [await house.link(), await house.link(), await house.link()];
      await house.arrive(made[0]!.touchUid);
      await house.arrive(made[1]!.touchUid);
      const desk = deskOf(house.ctx);
      const clicks: { code: string; uid: string }[] = [];
      for (const { what, which } of steps) {
        const { code } = made[which]!;
        if (what === "click") {
          const use = newUse(house.ctx, "on_click", code);
          await desk.take(use);
          clicks.push({ code, uid: use.click.uid });
        } else if (what === "sign in" && clicks.length > 0) {
          const parent = clicks[which % clicks.length]!;
          await desk.take(newUse(house.ctx, "post_login", parent.code, { userSub: "ada", parentUid: parent.uid }));
        } else if (what === "persist") await queuePersist(house.ctx, [code]);
        else if (what === "abandon") await abandonLinks(house.ctx, [code]);
        else if (what === "run") await house.run(persistLink);
        else if (what === "delayed") await house.run(delayedClickPersist);
        else if (what === "leaks") await house.run(leakedLinkDetection);
        else await house.base.clock.advance(1_000 * (which + 1));
        await house.audit();
      }
    }),
    { numRuns: 25 },
  );
}, 120_000);
