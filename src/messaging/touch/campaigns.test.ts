import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { switchNotifications } from "../contacts/service.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { campaignRunners, sendCampaignsJob } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { touchSendStats } from "./stats.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

const PUSH = "/api/1/admin/notifs/marketing_push";
const MAIL = "/api/1/admin/email/announcement";
const PEOPLE = ["ada", "bob", "cy", "dan", "eve"];

let house: TouchHouse;
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(clear);

async function clear(): Promise<void> {
  await house.clear("touch_campaigns", "user_touches");
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
  const text = (example: string) => ({ type: "string", example });
  await house.point("news", {
    event_schema: {
      type: "object",
      properties: {
        name: text("Ana"),
        words: text("We moved"),
        url: text("https://example.com"),
        unsubscribe_url: text("https://example.com"),
      },
      required: ["name", "words"],
    },
    messages: {
      push: [
        {
          priority: 1,
          uid: "crl_tppush_a",
          title_format: "{name}",
          title_parameters: ["name"],
          body_format: "{words}",
          body_parameters: ["words"],
          channel_id: "news",
        },
      ],
      email: [
        {
          priority: 1,
          uid: "crl_tpem_a",
          subject_format: "{words}",
          subject_parameters: ["words"],
          template: "welcome",
          template_parameters_substituted: [
            { key: ["name"], format: "{name}", parameters: ["name"] },
            { key: ["url"], format: "{url}", parameters: ["url"] },
            { key: ["unsubscribeUrl"], format: "{unsubscribe_url}", parameters: ["unsubscribe_url"] },
          ],
        },
      ],
    },
  });
}

const crowd = () =>
  Promise.all(PEOPLE.map((sub) => house.reachable(sub, { tokens: [`ExponentPushToken[${sub}-xxxxxxxx]`] })));
const wish = (more: object = {}) => ({
  touch_point_event_slug: "news",
  event_parameters: { words: "We moved" },
  ...more,
});
const begin = (path: string, body: object = wish()) => house.call("POST", path, { body });
const begun = () => house.workWithout("runners.touch.send_campaigns", "runners.touch.send");
const small = { settings: [[settings.campaignPage, 2]] as const };
const queued = async () => (await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1)).map((raw) => JSON.parse(raw));
const told = async () => (await queued()).map(({ user_sub }) => user_sub);
const campaigns = async () => (await house.call("GET", "/api/1/admin/campaigns")).json().items;
const outcome = (answer: { statusCode: number; body: string }) => [answer.statusCode, JSON.parse(answer.body).type];

test("everybody with a device that wants it is notified once, page by page", async () => {
  await crowd();
  await house.reachable("zoe", { phones: ["+14155550101"] });
  const [silent] = await house.query<{ uid: string }>(
    "select method.uid from user_push_tokens as method join users on users.id = user_id where users.sub = 'cy'",
  );
  await switchNotifications(house.ctx, [{ userSub: "cy", uid: silent!.uid, enabled: false }]);
  const answer = await begin(PUSH);
  expect(answer.json()).toEqual({
    job_uid: expect.stringMatching(/^crl_jp_/),
    uid: expect.stringMatching(/^crl_tcm_/),
  });
  await begun();
  expect(await campaigns()).toMatchObject([{ state: "running", told: 0 }]);
  await house.run(sendCampaignsJob, house.process(small));
  expect(await told()).toEqual(["ada", "bob", "dan", "eve"]);
  expect((await queued())[0]).toMatchObject({
    channel: "push",
    touch_point_event_slug: "news",
    event_parameters: { name: "there", words: "We moved", url: expect.stringMatching(/\/l\//) },
    success_callback: { name: "runners.touch.persist_links" },
    failure_callback: { name: "runners.touch.abandon_links" },
  });
  expect((await house.counts(touchSendStats)).events).toEqual({ queued: 4 });
  expect(await campaigns()).toMatchObject([
    { uid: answer.json().uid, channel: "push", event_slug: "news", state: "finished", told: 4, after_sub: "zoe" },
  ]);
  await house.run(sendCampaignsJob);
  expect(await told()).toHaveLength(4);
  await house.audit();
});

test("a preview tells whom a campaign would reach and in which words, and begins nothing", async () => {
  await crowd();
  await house.reachable("zoe", { emails: ["zoe@example.com", "zoe@example.org"], phones: ["+14155550101"] });
  await house.reachable("yan", { emails: ["yan@example.com"] });
  await house.query(
    "insert into suppressed_emails (uid, email_address, reason, created_at) values " +
      "('crl_sem_y', 'Yan@example.com', 'User', now())",
  );
  const preview = (channel: string, more: object = {}) =>
    begin("/api/1/admin/campaigns/preview", { ...wish(more), channel });
  expect((await preview("push")).json()).toEqual({
    people: 5,
    everybody: 7,
    messages: [{ title: "there", body: "We moved", channel_id: "news" }],
  });
  expect((await preview("email")).json()).toMatchObject({ people: 1, messages: [{ subject: "We moved" }] });
  expect(outcome(await preview("sms"))).toEqual([409, "parameters_mismatch"]);
  expect(outcome(await preview("push", { touch_point_event_slug: "no_such" }))).toEqual([404, "touch_point_not_found"]);
  expect([await campaigns(), await queued()]).toEqual([[], []]);
});

test("an announcement goes to everybody with an address, with a link for leaving that is theirs", async () => {
  await house.reachable("ada", { emails: ["ada@example.com", "ada@example.org"] });
  await house.reachable("bob", {});
  await begin(MAIL, wish());
  await begun();
  await house.run(sendCampaignsJob);
  const [touch, ...others] = await queued();
  expect(others).toEqual([]);
  expect(touch).toMatchObject({ user_sub: "ada", channel: "email" });
  const { url, unsubscribe_url: leaving } = touch.event_parameters;
  expect([url.split("/l/")[1].length, leaving.split("/l/")[1].length]).toEqual([22, 86]);
});

test("a campaign that could not be sent is refused before it begins, and only administrators begin one", async () => {
  const ada = await house.person("ada");
  const cases: readonly (readonly [string, object, readonly [number, string]])[] = [
    [PUSH, wish({ touch_point_event_slug: "no_such" }), [404, "touch_point_not_found"]],
    [PUSH, wish({ event_parameters: {} }), [409, "parameters_mismatch"]],
    ["/api/1/admin/sms/marketing_sms", wish(), [409, "parameters_mismatch"]],
    [PUSH, wish({ touch_point_event_slug: "daily_reminder", event_parameters: {} }), [409, "parameters_mismatch"]],
    [PUSH, wish({ more: 1 }), [422, "invalid_request"]],
  ];
  for (const [path, body, expected] of cases) expect(outcome(await begin(path, body))).toEqual(expected);
  for (const [method, path] of [
    ["POST", PUSH],
    ["GET", "/api/1/admin/campaigns"],
    ["DELETE", "/api/1/admin/campaigns/x"],
  ] as const)
    expect(
      (await house.call(method, path, { token: ada, ...(method === "POST" ? { body: wish() } : {}) })).statusCode,
    ).toBe(403);
  expect(await campaigns()).toEqual([]);
});

test("while touches have no room a campaign waits, makes no links, and goes on when there is", async () => {
  await crowd();
  await begin(PUSH);
  await begun();
  const narrow = house.process({
    settings: [
      [settings.campaignPage, 2],
      [settings.queueLimit, 2],
    ],
  });
  let ended = false;
  const running = house.run(sendCampaignsJob, narrow).then(() => {
    ended = true;
  });
  await eventually(async () => (await campaigns())[0].told === 2);
  expect(await told()).toEqual(["ada", "bob"]);
  expect(await house.length(linkKeys.buffer())).toBe(2);
  await house.ctx.redis.commands.del(keys.toSend());
  const later = (fact: () => Promise<boolean> | boolean) =>
    eventually(async () => {
      await house.base.clock.advance(5);
      return fact();
    });
  await later(async () => (await campaigns())[0].told === 4);
  await later(() => ended);
  await running;
  expect(await told()).toEqual(["cy", "dan"]);
  expect(await campaigns()).toMatchObject([{ state: "running", told: 4, after_sub: "dan", share: 0.8 }]);
  await house.ctx.redis.commands.del(keys.toSend());
  await house.run(sendCampaignsJob, narrow);
  expect(await told()).toEqual(["eve"]);
  expect(await campaigns()).toMatchObject([{ state: "finished", told: 5, share: null }]);
});

test("a campaign can be stopped, and one whose words are gone ends with a warning", async () => {
  await crowd();
  const { uid } = (await begin(PUSH)).json();
  await begin(PUSH);
  await begun();
  expect((await house.call("DELETE", `/api/1/admin/campaigns/${uid}`)).statusCode).toBe(204);
  expect(outcome(await house.call("DELETE", `/api/1/admin/campaigns/${uid}`))).toEqual([404, "campaign_not_found"]);
  await house.query("delete from touch_points where event_slug = 'news'");
  await house.run(sendCampaignsJob);
  expect(await told()).toEqual([]);
  expect(await campaigns()).toMatchObject([
    { state: "failed", reason: "There is no such touch point." },
    { uid, state: "stopped", reason: null },
  ]);
  expect(house.ctx.alerts.identifiers()).toContain("touch:campaign_failed");
});

test("the job that begins a campaign begins one, however often it is delivered", async () => {
  await crowd();
  for (let time = 0; time < 2; time++) await house.run(campaignRunners.push, house.ctx, wish());
  expect(await campaigns()).toHaveLength(1);
});

test("a campaign survives a death at every command and statement, and people who come and go: nobody is told twice or left out", async () => {
  const device = (sub: string) => ({ tokens: [`ExponentPushToken[${sub}-xxxxxxxx]`] });
  await house.reachable("ada", device("ada"));
  await house.reachable("cy", device("cy"));
  const prepare = async () => {
    await house.base.flush();
    await house.query("delete from touch_campaigns");
    await house.query("delete from users where sub in ('abe', 'bob')");
    await house.reachable("bob", device("bob"));
    await house.run(campaignRunners.push, house.ctx, wish());
  };
  const afterlife = async () => {
    await house.call("DELETE", "/api/1/admin/users/bob");
    await house.reachable("abe", device("abe"));
    await house.base.clock.advance(121);
    await house.run(sendCampaignsJob, house.process(small));
    const all = await told();
    expect(new Set(all).size).toBe(all.length);
    expect(all.filter((sub) => sub === "ada" || sub === "cy")).toEqual(["ada", "cy"]);
    expect(await campaigns()).toMatchObject([{ state: "finished" }]);
    await house.audit();
  };
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare,
    life: (redis) => house.run(sendCampaignsJob, house.process({ redis, ...small })),
    afterlife,
  });
  expect(deaths).toBeGreaterThan(10);
  await prepare();
  const whole = new MortalSql(house.base.sql);
  await house.run(sendCampaignsJob, house.process({ sql: whole, ...small }));
  await afterlife();
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++)
    for (const death of ["before", "after"] as const) {
      await prepare();
      const sql = new MortalSql(house.base.sql, { dieAt, death });
      await house.run(sendCampaignsJob, house.process({ sql, ...small })).catch(() => {});
      await afterlife();
    }
  expect(whole.sent).toBeGreaterThan(10);
}, 120_000);
