import { afterAll, beforeAll, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement } from "../../../test/harness/chaos-sql.ts";
import { sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { deleteUser } from "../../people/users/service.ts";
import type { ContactContext } from "./change.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import { contacts } from "./index.ts";
import {
  addEmails,
  addPhones,
  chooseLists,
  optIn,
  registerPushTokens,
  suppressAfterFailure,
  unsubscribeEmails,
} from "./service.ts";

let house: ContactsHouse;
beforeAll(async () => {
  house = await openContacts();
});
afterAll(() => house.close());

const NUMBER = "+14155552671";
const token = (name: number) => `ExponentPushToken[${name}]`;
const tokensOf = (userSub: string, ...names: number[]) =>
  names.map((name) => ({ userSub, token: token(name), platform: "ios" }) as const);

async function prepare(): Promise<void> {
  await house.clear();
  await house.people("ada", "bob");
  await registerPushTokens(house.ctx, tokensOf("ada", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  await registerPushTokens(house.ctx, tokensOf("bob", 10));
}

/** Takes ada's device over and gives ada an eleventh: a move, an insertion, an eviction and a refreshing in one. */
const exchange = (ctx: ContactContext) =>
  registerPushTokens(ctx, [...tokensOf("bob", 3), ...tokensOf("ada", 20, 21), ...tokensOf("bob", 10)]);

/** After the sweep of a fresh process, the counters tell of exactly the rows there are, and so does the log. */
async function expectCountersEqualRows(): Promise<void> {
  await house.ctx.clock.advance(10);
  await sweepDeltas(house.ctx);
  expect(await sweepDeltas(house.ctx)).toBe(0);
  const counters = await house.counters();
  const of = (event: string, channel: string) =>
    Object.entries(counters[event] ?? {}).reduce(
      (sum, [word, count]) => (word.startsWith(`${channel}:`) ? sum + count : sum),
      0,
    );
  for (const [channel, table] of [
    ["email", "user_email_addresses"],
    ["phone", "user_phone_numbers"],
    ["push", "user_push_tokens"],
  ] as const) {
    const rows = await house.query(`select 1 from ${table}`);
    expect([channel, of("created", channel) - of("deleted", channel)]).toEqual([channel, rows.length]);
  }
}

async function expectLogEqualsRows(): Promise<void> {
  const [balance] = await house.query<{ balance: number }>(
    `select count(*) filter (where action like 'create%') - count(*) filter (where action = 'delete') as balance
     from contact_method_log where channel = 'push'`,
  );
  const rows = await house.query("select 1 from user_push_tokens");
  expect(balance!.balance).toBe(rows.length);
}

test("a process that dies at any statement of a registration leaves rows, log and counters in accord", async () => {
  const ends = new Set<number>();
  const deaths = await dieAtEveryStatement(house.ctx.sql, {
    prepare,
    life: async (mortal) => void (await exchange(house.with({ sql: mortal }))),
    async afterlife() {
      await expectCountersEqualRows();
      await expectLogEqualsRows();
      const [{ moved }] = (await house.query<{ moved: number }>(
        `select count(*) as moved from user_push_tokens join users on users.id = user_id
         where sub = 'bob' and token = '${token(3)}'`,
      )) as [{ moved: number }];
      ends.add(moved);
      await exchange(house.ctx);
      expect(await house.query("select 1 from user_push_tokens")).toHaveLength(12);
      await expectCountersEqualRows();
    },
  });
  expect(deaths).toBeGreaterThan(15);
  expect(ends).toEqual(new Set([0, 1]));
}, 60_000);

test("a process that dies at any command to Redis has its counts applied once, by itself or by the sweep", async () => {
  const deaths = await dieAtEveryCommand(house.ctx.server, {
    prepare,
    life: async (redis) => void (await exchange(house.with({ redis }))),
    async afterlife() {
      await expectCountersEqualRows();
      expect((await house.counters()).deleted).toEqual({ "push:excessive": 1, "push:reassigned": 1 });
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(2);
}, 60_000);

test("a failure whose handler dies anywhere suppresses once when it is handled again", async () => {
  const failure = { type: "Bounce", email: "a@example.com", extra: "Permanent/General", messageId: "m" } as const;
  await dieAtEveryStatement(house.ctx.sql, {
    prepare: async () => {
      await house.clear();
      await house.people("ada");
      await addEmails(house.ctx, [{ userSub: "ada", email: "a@example.com", verified: true, cause: "identity" }]);
    },
    life: async (mortal) => void (await suppressAfterFailure(house.with({ sql: mortal }), [failure])),
    async afterlife() {
      await suppressAfterFailure(house.ctx, [failure]);
      expect(await house.query("select reason from suppressed_emails")).toEqual([{ reason: "Bounce" }]);
      expect(await house.query("select 1 from email_failures")).toHaveLength(1);
      expect(await house.query("select 1 from reminders_of_test")).toHaveLength(0);
      await expectCountersEqualRows();
    },
  });
}, 60_000);

test("a START whose handler dies anywhere verifies once, whoever repeats it", async () => {
  await dieAtEveryStatement(house.ctx.sql, {
    prepare: async () => {
      await house.clear();
      await house.people("ada");
      await addPhones(house.ctx, [
        { userSub: "ada", phoneNumber: NUMBER, verified: false, receivesNotifications: true, cause: "identity" },
      ]);
    },
    life: async (mortal) => void (await optIn(house.with({ sql: mortal }), [NUMBER])),
    async afterlife() {
      await optIn(house.ctx, [NUMBER]);
      await expectCountersEqualRows();
      expect((await house.counters()).verified).toEqual({ "phone:sms_start": 1 });
      expect(await house.query("select 1 from contact_method_log where action = 'verify'")).toHaveLength(1);
      expect(await house.query("select 1 from reminders_of_test")).toHaveLength(1);
    },
  });
}, 60_000);

test("the counts of a deleted user come with the deletion or not at all", async () => {
  await dieAtEveryStatement(house.ctx.sql, {
    prepare: async () => {
      await prepare();
      await addEmails(house.ctx, [{ userSub: "ada", email: "a@example.com", verified: true, cause: "identity" }]);
    },
    life: (mortal) => deleteUser(house.with({ sql: mortal }), [contacts], "ada"),
    afterlife: expectCountersEqualRows,
  });
}, 60_000);

test("a choice of lists that dies anywhere was made wholly or not at all, and can be made again", async () => {
  const choice = {
    email: "a@example.com",
    lists: ["reminders", "announcements"],
    wanted: ["announcements"],
    emailUid: "crl_em_1",
    scope: "lists",
  } as const;
  await dieAtEveryStatement(house.ctx.sql, {
    prepare: async () => {
      await house.clear();
      await house.people("ada");
      await addEmails(house.ctx, [{ userSub: "ada", email: "a@example.com", verified: true, cause: "identity" }]);
      await unsubscribeEmails(house.ctx, [{ email: "a@example.com", emailUid: "crl_em_0" }]);
    },
    life: (mortal) => chooseLists(house.with({ sql: mortal }), choice),
    async afterlife() {
      const left = await house.query("select list from email_list_optouts");
      const held = await house.query("select reason from suppressed_emails");
      // Between the two there is nothing: all lists were left, or one is.
      expect([left.length, held.length]).toEqual(left.length === 1 ? [1, 0] : [0, 1]);
      await chooseLists(house.ctx, choice);
      expect(await house.query("select list from email_list_optouts")).toEqual([{ list: "reminders" }]);
      expect(await house.query("select 1 from suppressed_emails")).toEqual([]);
      expect(await house.query("select 1 from unsubscribed_emails_log")).toHaveLength(2);
      expect(await house.query("select 1 from reminders_of_test")).toHaveLength(1);
      await expectCountersEqualRows();
    },
  });
}, 60_000);
