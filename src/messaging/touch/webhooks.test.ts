import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openWebhooks, verified, type WebhooksHouse } from "../../infrastructure/webhooks/webhooks.fixture.ts";
import { addEmails, addPhones, unsubscribeEmails } from "../contacts/service.ts";
import { persistLink } from "../links/jobs.ts";
import { PERSON } from "../links/links.fixture.ts";
import { createLinks, queuePersist, recordTouches } from "../links/service.ts";
import type { LinkTables } from "../links/tables.ts";
import { ended } from "./effects.ts";
import { send } from "./jobs.ts";
import { rooms } from "./touch.fixture.ts";

let house: WebhooksHouse;
let secret: string;
beforeAll(async () => {
  house = await openWebhooks(rooms);
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches", "suppressed_emails");
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

test("touches that arrived or failed are told once, though their channel reports them twice", async () => {
  const common = { channel: "sms" as const, userSub: "ada", at: house.ctx.clock.now() };
  const ends = [
    { ...common, type: "delivered" as const, touchUid: "crl_tch_1", destination: "+14155550101" },
    { ...common, type: "failed" as const, touchUid: "crl_tch_2" },
  ];
  await ended(house.ctx, ends);
  await ended(house.ctx, ends);
  await house.work();
  const data = { user_sub: "ada", channel: "sms" };
  expect(told()).toEqual([
    { type: "touch.delivered", data: { ...data, touch_uid: "crl_tch_1", destination: "+14155550101" } },
    { type: "touch.failed", data: { ...data, touch_uid: "crl_tch_2" } },
  ]);
});

test("a touch that reaches nobody is told as failed, once, though its callback tells too", async () => {
  await house.query("delete from touch_points where event_slug = 'greeting'");
  await house.call("POST", "/api/1/admin/touch_points", {
    body: {
      event_slug: "greeting",
      selection_strategy: "fixed",
      messages: { sms: [{ priority: 1, uid: "crl_tpsms_a", body_format: "Hi", body_parameters: [] }] },
    },
  });
  const ordered = await house.call("POST", "/api/1/admin/touches", {
    body: { user_sub: "ada", touch_point_event_slug: "greeting", channels: ["sms"] },
  });
  const [{ uid }] = ordered.json().touches;
  await house.run(send);
  expect(await house.work()).toContain("runners.touch.tell_failed");
  expect(told()).toEqual([{ type: "touch.failed", data: { touch_uid: uid, user_sub: "ada", channel: "sms" } }]);
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
  await ended(house.ctx, [{ type: "failed", channel: "sms", touchUid: "crl_tch_3", userSub: "ada", at: 1 }]);
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
