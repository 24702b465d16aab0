import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { sweep } from "../../infrastructure/webhooks/jobs.ts";
import { openWebhooks, verified, type WebhooksHouse } from "../../infrastructure/webhooks/webhooks.fixture.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { addEmails, addPhones, unsubscribeEmails } from "../contacts/service.ts";
import { persistLink } from "../links/jobs.ts";
import { PERSON } from "../links/links.fixture.ts";
import { createLinks, queuePersist, recordTouches } from "../links/service.ts";
import type { LinkTables } from "../links/tables.ts";
import { failureJob } from "../sms/callbacks.ts";
import { type SmsEntry, smsEntry } from "../sms/entries.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { arrived } from "./effects.ts";
import { sendTouches } from "./enqueue.ts";
import { send, staleDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { rooms } from "./touch.fixture.ts";

let house: WebhooksHouse;
let secret: string;
beforeAll(async () => {
  house = await openWebhooks(rooms);
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches", "suppressed_emails", "suppressed_phone_numbers");
  await house.person("ada");
  ({ secret } = await house.endpoint());
});

/** What the receiver was told, checked, without times and in the order of the alphabet: requests overtake each other. */
const told = () =>
  house.receiver.requests
    .map((request) => {
      const { type, data } = verified(request, secret, house.ctx.clock.now());
      return { type, data };
    })
    .sort((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)));

async function point(): Promise<void> {
  await house.query("delete from touch_points where event_slug = 'greeting'");
  await house.call("POST", "/api/1/admin/touch_points", {
    body: {
      event_slug: "greeting",
      selection_strategy: "fixed",
      messages: { sms: [{ priority: 1, uid: "crl_tpsms_a", body_format: "Hi", body_parameters: [] }] },
    },
  });
}

/** A touch with a link, so that its callbacks are those of the link; answers its uid and its text after it was sent. */
async function sentWithLink() {
  await point();
  await addPhones(house.ctx, [
    { userSub: "ada", verified: true, phoneNumber: "+14155550101", receivesNotifications: true, cause: "verify" },
  ]);
  const links = [{ parameter: "url" }];
  const body = { user_sub: "ada", touch_point_event_slug: "greeting", channels: ["sms"], links };
  const ordered = await house.call("POST", "/api/1/admin/touches", { body });
  await house.run(send);
  const { commands, topology } = house.ctx.redis;
  const raw = await commands.lpopBuffer(topology.key(smsKeys.toSend()));
  await commands.del(topology.key(jobKeys.hot()));
  return { uid: ordered.json().touches[0].uid as string, text: smsEntry.decode(raw!) };
}

/** The channel says, so many times, that the text cannot be sent. */
async function refuse(text: SmsEntry, times: number): Promise<void> {
  const { commands, topology } = house.ctx.redis;
  const refusal = {
    action: "send" as const,
    identifier: "ApplicationErrorOther" as const,
    subidentifier: "21211",
    retryable: false,
    extra: null,
  };
  const job = failureJob(text, refusal, house.ctx.clock.now());
  for (let time = 0; time < times; time++) await commands.rpush(topology.key(jobKeys.hot()), job);
}

test("touches that arrived are told once, though their channel reports them twice", async () => {
  const common = { channel: "sms" as const, userSub: "ada", at: house.ctx.clock.now() };
  const arrivals = [{ ...common, touchUid: "crl_tch_1", destination: "+14155550101" }];
  await arrived(house.ctx, arrivals);
  await arrived(house.ctx, arrivals);
  await house.work();
  const data = { user_sub: "ada", channel: "sms" };
  expect(told()).toEqual([
    { type: "touch.delivered", data: { ...data, touch_uid: "crl_tch_1", destination: "+14155550101" } },
  ]);
});

test("a touch whose last message failed is told once, though its callback is for its links", async () => {
  const { uid, text } = await sentWithLink();
  await refuse(text, 2);
  await house.work();
  expect(told()).toEqual([{ type: "touch.failed", data: { touch_uid: uid, user_sub: "ada", channel: "sms" } }]);
  expect(await house.length(keys.toTell())).toBe(0);
});

test("a touch whose end no channel told is told as failed when it is given up", async () => {
  const { uid } = await sentWithLink();
  expect(await house.length(keys.toTell())).toBe(1);
  await house.base.clock.advance(136_801);
  await house.run(staleDetection);
  await house.run(staleDetection);
  expect((await house.work()).filter((name) => name.startsWith("runners.touch"))).toEqual([
    "runners.touch.abandon_links",
    "runners.touch.tell_failed",
  ]);
  expect(told()).toEqual([{ type: "touch.failed", data: { touch_uid: uid, user_sub: "ada", channel: "sms" } }]);
  expect(await house.length(keys.toTell())).toBe(0);
});

test("whoever dies at any command of ending touches has told of each failure once when all is done", async () => {
  for (const how of ["refused", "never told"] as const) {
    let uid = "";
    await dieAtEveryCommand(house.base.server, {
      prepare: async () => {
        await house.clear("user_touches", "suppressed_phone_numbers");
        await house.person("ada");
        ({ secret } = await house.endpoint());
        const sent = await sentWithLink();
        uid = sent.uid;
        if (how === "refused") await refuse(sent.text, 1);
        else await house.base.clock.advance(136_801);
      },
      life: async (redis) => {
        const process = house.process({ redis });
        if (how === "refused") await house.work(process);
        else await house.run(staleDetection, process);
      },
      afterlife: async () => {
        await house.run(staleDetection);
        await house.work();
        await house.pass(130);
        // Deliveries that the dead one could not queue.
        await house.run(sweep);
        await house.work();
        expect(told()).toEqual([{ type: "touch.failed", data: { touch_uid: uid, user_sub: "ada", channel: "sms" } }]);
      },
    });
  }
});

test("a touch that reaches nobody is told as failed, once, whether its callback tells or not", async () => {
  await point();
  const ordered = await house.call("POST", "/api/1/admin/touches", {
    body: { user_sub: "ada", touch_point_event_slug: "greeting", channels: ["sms"] },
  });
  const [{ uid }] = ordered.json().touches;
  const nobody = { userSub: "nobody", slug: "greeting", channel: "sms" as const, parameters: {} };
  const [other] = await sendTouches(house.ctx, [nobody]);
  await house.run(send);
  const telling = (await house.work()).filter((name) => name === "runners.touch.tell_failed");
  expect(telling).toHaveLength(2);
  const failed = (touch_uid: string, user_sub: string) => ({
    type: "touch.failed",
    data: { touch_uid, user_sub, channel: "sms" },
  });
  expect(told()).toEqual(
    [failed(uid, "ada"), failed(other!.uid, "nobody")].sort((one, two) =>
      JSON.stringify(one).localeCompare(JSON.stringify(two)),
    ),
  );
});

test("a click is told with its touch and page and without its code, while its link waits and after it is stored", async () => {
  const token = (await house.call("POST", "/api/1/admin/users/ada/access_token", { body: {} })).json().access_token;
  const touchUid = "crl_tch_clicked";
  const [link] = await createLinks(house.ctx, [{ touchUid, page: { identifier: "home" } }]);
  const { code } = link!;
  const click = async (as: string) => {
    const answer = await house.call("POST", "/api/1/notifications/complete", {
      token: as,
      body: { code },
      headers: PERSON,
    });
    await house.base.clock.advance(4);
    return answer.json().click_uid as string;
  };
  const first = await click("");
  await house.work();
  await recordTouches(house.ctx.sql.tables<LinkTables>(), [
    {
      row_uid: "crl_tch_r_1",
      uid: touchUid,
      user_sub: "ada",
      channel: "email",
      touch_point_id: null,
      destination: "ada@example.com",
      message: {},
      created_at: house.ctx.clock.now(),
    },
  ]);
  await queuePersist(house.ctx, [code]);
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  house.receiver.requests.splice(1);
  const second = await click(token);
  await house.work();
  const data = { touch_uid: touchUid, page_identifier: "home", track_type: "on_click", parent_click_uid: null };
  const bodies = house.receiver.requests.map(({ body }) => JSON.parse(body.toString("utf8")));
  expect(bodies).toMatchObject([
    { type: "link.clicked", data: { ...data, click_uid: first, user_sub: null } },
    { type: "link.clicked", data: { ...data, click_uid: second, user_sub: "ada" } },
  ]);
  expect(JSON.stringify(bodies)).not.toContain(code);
});

test("where nobody wants to hear of clicks, a click leaves no job", async () => {
  await house.query("update webhook_endpoints set types = '{touch.failed}'");
  await house.base.clock.advance(10);
  const arrival = {
    channel: "sms" as const,
    touchUid: "crl_tch_3",
    userSub: "ada",
    destination: "+14155550101",
    at: 1,
  };
  await arrived(house.ctx, [arrival]);
  await house.work();
  const [link] = await createLinks(house.ctx, [{ touchUid: "crl_tch_4", page: { identifier: "home" } }]);
  const body = { code: link!.code };
  await house.call("POST", "/api/1/notifications/complete", { token: "", body, headers: PERSON });
  expect(await house.work()).not.toContain("runners.touch.tell_clicks");
});

test("people who leave are told with their address, by mail and by text", async () => {
  const common = { userSub: "ada", verified: true } as const;
  await addEmails(house.ctx, [{ ...common, email: "ada@example.com", cause: "identity" }]);
  await addPhones(house.ctx, [
    { ...common, phoneNumber: "+14155550101", receivesNotifications: true, cause: "verify" },
  ]);
  await unsubscribeEmails(house.ctx, [{ email: "ada@example.com", emailUid: "crl_em_1" }]);
  const { phones } = (await house.call("GET", "/api/1/admin/users/ada/contact_methods")).json();
  expect(phones).toHaveLength(1);
  await house.call("POST", "/api/1/admin/suppressed_phone_numbers", { body: { phone_number: "+14155550101" } });
  await house.work();
  expect(told()).toMatchObject([
    {
      type: "contact.unsubscribed",
      data: { user_sub: "ada", channel: "email", address: "ada@example.com", reason: "unsubscribed", scope: "lists" },
    },
    {
      type: "contact.unsubscribed",
      data: { user_sub: "ada", channel: "sms", address: "+14155550101", reason: "unsubscribed", scope: null },
    },
  ]);
});
