import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import {
  addEmails,
  addPhones,
  chooseLists,
  contactMethodsOf,
  installEffects,
  optOut,
  registerPushTokens,
  suppressEmails,
  suppressPhones,
  switchNotifications,
  type Unsubscribed,
  unsubscribeEmails,
  unsuppressEmails,
} from "./service.ts";

let house: ContactsHouse;
let takeAway: () => void;
const told: (readonly Unsubscribed[])[] = [];
beforeAll(async () => {
  house = await openContacts();
  takeAway = installEffects({ unsubscriptions: { told: async (_ctx, left) => void told.push(left) } });
});
afterAll(async () => {
  takeAway();
  await house.close();
});
beforeEach(async () => {
  await house.clear();
  told.length = 0;
  await house.people("ada", "bob");
});

const NUMBER = "+14155552671";
const common = { verified: true } as const;

test("whoever leaves by a link is told of once, for each account with the address", async () => {
  await addEmails(house.ctx, [
    { ...common, userSub: "ada", email: "Shared@example.com", cause: "identity" },
    { ...common, userSub: "bob", email: "shared@example.com", cause: "identity" },
  ]);
  const asked = ["shared@EXAMPLE.com", "nobody@example.com"].map((email) => ({ email, emailUid: "crl_em_1" }));
  await unsubscribeEmails(house.ctx, asked);
  const left = { channel: "email", reason: "unsubscribed", scope: "lists", at: house.ctx.clock.now() };
  expect(told).toMatchObject([
    [
      { ...left, address: "shared@EXAMPLE.com", userSub: "ada" },
      { ...left, address: "shared@EXAMPLE.com", userSub: "bob" },
      { ...left, address: "nobody@example.com", userSub: null },
    ],
  ]);
  await unsubscribeEmails(house.ctx, asked);
  expect(told).toHaveLength(1);
  // Whoever comes back and leaves again is told of again, under another key.
  await unsuppressEmails(house.ctx, { emails: ["nobody@example.com"] });
  await unsubscribeEmails(house.ctx, asked);
  expect(told[1]).toMatchObject([{ address: "nobody@example.com" }]);
  expect(told[1]![0]!.key).not.toBe(told[0]![2]!.key);
});

test("leaving all lists is told of, leaving some is not, and neither is what nobody wished", async () => {
  const choice = { email: "a@example.com", lists: ["one", "two"], emailUid: "crl_em_1", scope: "lists" } as const;
  await chooseLists(house.ctx, { ...choice, wanted: ["one"] });
  await suppressEmails(house.ctx, [
    { email: "b@example.com", reason: "Bounce" },
    { email: "c@example.com", reason: "Admin" },
  ]);
  await suppressPhones(house.ctx, [{ phoneNumber: "+14155550001", reason: "Unreachable" }]);
  expect(told).toEqual([]);
  await chooseLists(house.ctx, { ...choice, wanted: [] });
  expect(told).toMatchObject([[{ address: "a@example.com", reason: "unsubscribed", userSub: null }]]);
});

test("a text with STOP and a switch that is turned off are told of with their reasons", async () => {
  await addPhones(house.ctx, [
    { ...common, userSub: "ada", phoneNumber: NUMBER, receivesNotifications: true, cause: "verify" },
  ]);
  await registerPushTokens(house.ctx, [{ userSub: "bob", token: "ExponentPushToken[1]", platform: "ios" }]);
  await optOut(house.ctx, [NUMBER]);
  await optOut(house.ctx, [NUMBER]);
  expect(told).toMatchObject([[{ channel: "phone", address: NUMBER, reason: "stop", scope: null, userSub: "ada" }]]);
  const { push_tokens } = await contactMethodsOf(house.ctx, "bob");
  const turn = (enabled: boolean) =>
    switchNotifications(house.ctx, [{ userSub: "bob", uid: push_tokens[0]!.uid, enabled }]);
  await turn(false);
  await turn(true);
  expect(told.slice(1)).toMatchObject([
    [{ channel: "push", address: "ExponentPushToken[1]", reason: "switched_off", userSub: "bob" }],
  ]);
});

test("a change that was not committed is told to nobody", async () => {
  const mortal = new MortalSql(house.ctx.sql, { dieAt: 4, death: "before" });
  await expect(
    unsubscribeEmails(house.with({ sql: mortal }), [{ email: "a@example.com", emailUid: "crl_em_1" }]),
  ).rejects.toThrow();
  expect(told).toEqual([]);
});
