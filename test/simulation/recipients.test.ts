import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { addEmails, addPhones, registerPushTokens } from "../../src/messaging/contacts/service.ts";
import * as email from "../../src/messaging/email/jobs.ts";
import { linkStats } from "../../src/messaging/links/stats.ts";
import { checkReceipts } from "../../src/messaging/push/check.ts";
import { ticketHotToCold } from "../../src/messaging/push/cold-to-hot.ts";
import { sendPush } from "../../src/messaging/push/send.ts";
import { registrationStats } from "../../src/messaging/reminders/stats.ts";
import * as sms from "../../src/messaging/sms/jobs.ts";
import { keys as smsKeys } from "../../src/messaging/sms/keys.ts";
import { enqueueSms } from "../../src/messaging/sms/service.ts";
import { smsSendStats } from "../../src/messaging/sms/stats.ts";
import * as touch from "../../src/messaging/touch/jobs.ts";
import { keys as touchKeys } from "../../src/messaging/touch/keys.ts";
import { settings as touchSettings } from "../../src/messaging/touch/settings.ts";
import { touchStaleStats } from "../../src/messaging/touch/stats.ts";
import { moment, Weather } from "./days.ts";
import { openPeopleHouse, type PeopleHouse } from "./people-house.ts";

const START = 1_792_800_000;
const TOKEN = "ExponentPushToken[the-telephone-of-ada]";
let house: PeopleHouse;
let ada: string;
beforeAll(async () => {
  house = await openPeopleHouse(START, new Weather("recipients"), []);
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("suppressed_emails", "suppressed_phone_numbers");
  house.sandbox.knobs.reset();
  house.sandbox.inbox.clear();
  house.sandbox.twilio.stopped.clear();
  ada = await house.person("ada", { timezone: "Europe/Berlin", given_name: "Ada" });
  const common = { userSub: "ada", verified: true };
  await addPhones(house.ctx, [
    { ...common, phoneNumber: "+14155550100", receivesNotifications: true, cause: "verify" },
  ]);
  await addEmails(house.ctx, [{ ...common, email: "ada@example.com", cause: "identity" }]);
  await registerPushTokens(house.ctx, [{ userSub: "ada", token: TOKEN, platform: "ios" }]);
});

const arrive = async () => {
  for (let turn = 0; turn < 40; turn++) await moment(house.base);
};
/** Sends Ada a reminder by this channel, and lets the channels work until it ended, or for a while; answers how it ended. */
async function remind(channel: "sms" | "email" | "push", rounds = 20): Promise<string> {
  const answer = await house.call("POST", "/api/1/admin/touches", {
    body: {
      user_sub: "ada",
      touch_point_event_slug: "daily_reminder",
      channels: [channel],
      event_parameters: { name: "Ada", time_of_day: "morning" },
      links: [
        { parameter: "url", code_style: channel === "sms" ? "short" : "normal" },
        { parameter: "unsubscribe_url", page_identifier: "unsubscribe", code_style: "long" },
      ],
    },
  });
  expect(answer.statusCode).toBe(202);
  const { uid } = answer.json().touches[0];
  await house.job(touch.send, false);
  let state = "";
  for (let round = 0; round < rounds && !/delivered|failed/.test(state); round++) {
    for (const job of [sms.send, email.send, sendPush]) await house.job(job, false);
    await house.base.clock.advance(60);
    await arrive();
    for (const job of [sms.receiptReconciliation, email.receiptReconciliation]) await house.job(job, false);
    if (channel === "push") {
      await house.base.clock.advance(1200);
      for (const job of [ticketHotToCold, checkReceipts]) await house.job(job, false);
    }
    await house.callbacks(false);
    await house.job(touch.log, false);
    state = (await house.call("GET", `/api/1/admin/touches/${uid}`)).json().state;
    await house.base.clock.advance(300);
  }
  return state;
}
const knobs = (recipients: object) => house.call("PATCH", "/api/1/sandbox/knobs", { token: "", body: { recipients } });
const methods = async () => (await house.call("GET", "/api/1/users/me/contact_methods", { token: ada })).json();

test("somebody finds the links of a mail in their inbox, follows one and signs in, while robots only look", async () => {
  house.sandbox.knobs.patch({ recipients: { previewBots: 3 } });
  await remind("email");
  const { recipients } = house.sandbox;
  const [mail] = recipients.received("Ada@Example.com");
  expect(mail?.codes).toHaveLength(2);
  expect(recipients.received("da@example.com")).toEqual([]);
  const followed = await recipients.click(mail!.codes[0]!, { visitor: "crl_v_1", thenLogin: { token: ada } });
  expect(followed).toMatchObject({ answered: 200, page: "home", login: 202 });
  const { events, words } = await house.counts(linkStats);
  expect(events).toMatchObject({ click_attempts: 2, clicks_buffered: 2, robots: 6 });
  expect(words.clicks_buffered).toEqual({
    "on_click:home:vis=True:user=False": 1,
    "post_login:home:vis=True:user=True": 1,
  });
  expect(await recipients.click("no-such-code")).toMatchObject({ answered: 404, clickUid: null });
});

test("somebody leaves with the link of their newest mail, and another says STOP and START by text", async () => {
  await remind("email");
  const { recipients } = house.sandbox;
  expect(await recipients.unsubscribe("ada@example.com")).toEqual({ answered: 200 });
  expect((await methods()).emails[0].suppressed).toBe(true);
  await expect(recipients.unsubscribe("nobody@example.com")).rejects.toThrow("No mail to nobody@example.com");
  await recipients.text("+14155550100", "STOP");
  await house.job(sms.followWishesJob, false);
  expect((await methods()).phones[0].suppressed).toBe(true);
  await recipients.text("+14155550100", "START");
  await house.job(sms.followWishesJob, false);
  expect((await methods()).phones[0].suppressed).toBe(false);
});

const PHONE = "+14155550100";
const addPhone = (userSub: string, phoneNumber: string) =>
  addPhones(house.ctx, [{ userSub, phoneNumber, verified: true, receivesNotifications: true, cause: "verify" }]);
/** Who is reminded by text, whose number gets none, and why reminders began and ended. */
const reminded = async () => {
  const subs = await house.query<{ sub: string }>(
    `select sub from user_daily_reminders as held join users on users.id = held.user_id
     where channel = 'sms' order by sub`,
  );
  const suppressed = await house.query<{ reason: string }>("select reason from suppressed_phone_numbers");
  const { words } = await house.counts(registrationStats);
  const byText = (event: string) => Object.entries(words[event] ?? {}).filter(([word]) => /^sms:(?!phone_)/.test(word));
  return {
    subs: subs.map(({ sub }) => sub),
    suppressed: suppressed.map(({ reason }) => reason),
    ended: Object.fromEntries(byText("unsubscribed")),
    begun: Object.fromEntries(byText("subscribed")),
  };
};

test("STOP ends the reminders by text of both accounts with the number, START brings back those of its one account, and other words do nothing", async () => {
  await house.person("bob", { timezone: "Europe/Berlin", given_name: "Bob" });
  await addPhone("bob", PHONE);
  const say = async (words: string) => {
    expect(await house.sandbox.recipients.text(PHONE, words)).toEqual({ answered: 200 });
    await house.job(sms.followWishesJob, false);
  };
  const both = { subs: ["ada", "bob"], suppressed: [], ended: {}, begun: {} };
  expect(await reminded()).toEqual(both);
  await say("we end at noon");
  expect(await reminded()).toEqual(both);
  await say("STOP");
  const stopped = { subs: [], suppressed: ["Stop"], ended: { "sms:sms_stop": 2 }, begun: {} };
  expect(await reminded()).toEqual(stopped);
  await house.query("delete from users where sub = 'bob'");
  await house.query("update user_phone_numbers set verified = false");
  await say("START");
  expect(await reminded()).toEqual({ ...stopped, subs: ["ada"], suppressed: [], begun: { "sms:sms_start": 1 } });
  expect((await methods()).phones[0]).toMatchObject({ verified: true, suppressed: false });
});

test("a number that the provider calls stopped is suppressed, its reminder by text ends, and the next text goes out in the same second", async () => {
  await house.person("cy", { timezone: "Europe/Berlin", given_name: "Cy" });
  await addPhone("cy", "+15005550004");
  expect((await reminded()).subs).toEqual(["ada", "cy"]);
  const job = (which: string) => ({ name: `runners.sms.default_${which}`, kwargs: {} });
  const text = (phoneNumber: string) => ({
    phoneNumber,
    body: "Time to breathe",
    failureJob: job("failure"),
    successJob: job("success"),
  });
  await enqueueSms(house.ctx, [text("+15005550004"), text(PHONE)]);
  const began = house.base.clock.now();
  await house.job(sms.send, false);
  expect(house.base.clock.now() - began).toBeLessThan(1);
  expect(house.sandbox.recipients.received(PHONE)).toHaveLength(1);
  await house.callbacks(false);
  expect((await house.counts(smsSendStats)).words.failed_due_to_application_error_other).toEqual({ "21610": 1 });
  expect(await reminded()).toEqual({
    subs: ["ada"],
    suppressed: ["Unreachable"],
    ended: { "sms:unreachable": 1 },
    begun: {},
  });
});

test.each([
  ["sms", "+14155550100"],
  ["email", "ada@example.com"],
  ["push", TOKEN],
] as const)("what becomes of a message by %s is decided for its receiver alone", async (channel, to) => {
  const { knobs, recipients } = house.sandbox;
  const fated = (fate: object | string) => knobs.patch({ recipients: { deliver: { [to]: fate as never } } });
  fated("never");
  expect(await remind(channel, 1)).toBe("dispatched");
  fated({ after: 30 });
  expect(await remind(channel)).toBe("delivered");
  fated({ fail: "transient", times: 1 });
  expect(await remind(channel)).toBe("delivered");
  expect(knobs.get().recipients.deliver[to]).toEqual({ fail: "transient", times: 0 });
  fated({ fail: "permanent" });
  expect(await remind(channel)).toBe("failed");
  expect(recipients.received(to).length).toBeGreaterThanOrEqual(4);
});

test("a touch whose channel finished and never called back is waited for, and then fails as stale", async () => {
  expect((await knobs({ dropCallbacks: true })).statusCode).toBe(200);
  expect(await remind("sms", 3)).toBe("dispatched");
  // The channel has nothing left to do for the text, which arrived.
  expect(house.sandbox.recipients.received("+14155550100")).toHaveLength(1);
  expect(await house.length(smsKeys.pending())).toBe(0);
  const [uid] = await house.ctx.redis.commands.zrange(touchKeys.pending(), 0, "-1");
  const state = async () => {
    await house.job(touch.staleDetection, false);
    await house.callbacks(false);
    return (await house.call("GET", `/api/1/admin/touches/${uid}`)).json().state;
  };
  await house.base.clock.advance(house.ctx.config.get(touchSettings.pendingExpiry) - 7_200);
  expect(await state()).toBe("dispatched");
  await house.base.clock.advance(7_200);
  expect(await state()).toBe("expired");
  expect((await house.counts(touchStaleStats)).events.stale).toBe(1);
  expect(await house.length(touchKeys.pending())).toBe(0);
  await knobs({ dropCallbacks: false });
  expect(await remind("sms")).toBe("delivered");
});
