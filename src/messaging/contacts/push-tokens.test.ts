import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { findPostgres, startPostgres } from "../../../test/harness/postgres.ts";
import { openSql } from "../../kernel/sql/index.ts";
import { type ContactsHouse, openContacts } from "./contacts.fixture.ts";
import { invariants } from "./invariants.ts";
import { createPushToken } from "./jobs.ts";
import {
  deletePushTokens,
  disablePushToken,
  installEffects,
  registerPushTokens,
  type TokenRegistration,
} from "./service.ts";

const token = (name: string | number) => `ExponentPushToken[${String(name).padStart(20, "x")}]`;
const by = (userSub: string, name: string | number): TokenRegistration => ({
  userSub,
  token: token(name),
  platform: "ios",
});

/** The same suite on every engine: locks and races are the engine's own. */
const bin = findPostgres();
const engines: { name: string; open(): Promise<{ house: ContactsHouse; close(): Promise<void> }> }[] = [
  {
    name: "PGlite",
    async open() {
      const house = await openContacts();
      return { house, close: () => house.close() };
    },
  },
];
if (bin)
  engines.push({
    name: "Postgres",
    async open() {
      const server = await startPostgres(bin);
      const engine = await openSql({ kind: "postgres", url: server.url });
      const house = await openContacts(engine);
      return {
        house,
        close: async () => {
          await house.close();
          await engine.close();
          await server.stop();
        },
      };
    },
  });

for (const engine of engines)
  describe(engine.name, () => {
    let opened: { house: ContactsHouse; close(): Promise<void> };
    let house: ContactsHouse;
    beforeAll(async () => {
      opened = await engine.open();
      house = opened.house;
    });
    beforeEach(() => house.clear());
    afterAll(() => opened.close());

    const owners = async () =>
      Object.fromEntries(
        (
          await house.query<{ token: string; sub: string }>(
            "select token, sub from user_push_tokens join users on users.id = user_id order by user_push_tokens.id",
          )
        ).map(({ token: held, sub }) => [held, sub]),
      );
    const logged = () =>
      house.query<{ story: string }>(
        `select sub || ' ' || action || ' ' || (reason ->> 'source') || coalesce(' ' || (reason ->> 'reason'), '') as story
         from contact_method_log join users on users.id = user_id order by contact_method_log.id`,
      );
    const stories = async () => (await logged()).map(({ story }) => story);

    test(`${engine.name}: an unknown token is inserted, switched on, logged and counted`, async () => {
      await house.people("ada");
      expect(await registerPushTokens(house.ctx, [by("ada", 1)])).toEqual(["created"]);
      const [row] = await house.query<Record<string, unknown>>("select * from user_push_tokens");
      const now = house.ctx.clock.now();
      expect(row).toMatchObject({
        token: token(1),
        platform: "ios",
        receives_notifications: true,
        created_at: now,
        updated_at: now,
        last_seen_at: now,
        last_confirmed_at: null,
      });
      expect(row!.uid).toMatch(/^crl_upt_/);
      expect(await stories()).toEqual(["ada create_unverified app"]);
      expect(await house.counters()).toEqual({ created: { "push:enabled:app": 1 } });
      expect(house.tokenEvents).toEqual({ created: 1 });
      expect(house.reminders).toEqual(["+ada push:push_token_added"]);
    });

    test(`${engine.name}: a token that is the user's already is only refreshed, and stays off if it was off`, async () => {
      await house.people("ada");
      await registerPushTokens(house.ctx, [by("ada", 1)]);
      const created = house.ctx.clock.now();
      await disablePushToken(house.ctx, "ada", token(1));
      await house.ctx.clock.advance(60);
      expect(await registerPushTokens(house.ctx, [by("ada", 1)])).toEqual(["refreshed"]);
      const [row] = await house.query<Record<string, unknown>>("select * from user_push_tokens");
      const now = house.ctx.clock.now();
      expect(row).toMatchObject({
        receives_notifications: false,
        created_at: created,
        updated_at: now,
        last_seen_at: now,
      });
      expect(await stories()).toEqual(["ada create_unverified app", "ada disable_notifs user"]);
      expect((await house.counters()).created).toEqual({ "push:enabled:app": 1 });
      expect(house.tokenEvents).toEqual({ created: 1, refreshed: 1 });
    });

    test(`${engine.name}: a token of another user moves, and reminders follow it`, async () => {
      await house.people("ada", "bob");
      await registerPushTokens(house.ctx, [by("ada", 1)]);
      await disablePushToken(house.ctx, "ada", token(1));
      await registerPushTokens(house.ctx, [by("ada", 2)]);
      house.reminders.length = 0;
      expect(await registerPushTokens(house.ctx, [{ ...by("bob", 2), platform: "android" }])).toEqual(["reassigned"]);
      expect(await owners()).toEqual({ [token(1)]: "ada", [token(2)]: "bob" });
      const [moved] = await house.query<Record<string, unknown>>(
        `select * from user_push_tokens where token = '${token(2)}'`,
      );
      expect(moved).toMatchObject({ platform: "android", receives_notifications: true });
      expect((await stories()).slice(-2)).toEqual(["ada delete app reassign", "bob create_unverified app reassign"]);
      expect(await house.counters()).toMatchObject({
        deleted: { "push:reassigned": 1 },
        created: { "push:enabled:app": 3 },
      });
      expect(house.tokenEvents.reassigned).toBe(1);
      expect(house.reminders).toEqual(["-ada push:unreachable", "+bob push:push_token_added"]);
    });

    test(`${engine.name}: a token for a user that does not exist changes nothing`, async () => {
      await house.people("ada");
      expect(await registerPushTokens(house.ctx, [by("nobody", 1), by("ada", 2)])).toEqual(["unknown_user", "created"]);
      expect(await owners()).toEqual({ [token(2)]: "ada" });
    });

    test(`${engine.name}: the eleventh token takes the place of the one unseen for longest`, async () => {
      await house.people("ada");
      for (let name = 0; name < 10; name++) {
        await registerPushTokens(house.ctx, [by("ada", name)]);
        await house.ctx.clock.advance(1);
      }
      await registerPushTokens(house.ctx, [by("ada", 0)]);
      await house.ctx.clock.advance(1);
      expect(await registerPushTokens(house.ctx, [by("ada", "new")])).toEqual(["created"]);
      const held = Object.keys(await owners());
      expect(held).toHaveLength(10);
      expect(held).not.toContain(token(1));
      expect(held).toContain(token(0));
      expect((await stories()).slice(-2)).toEqual(["ada delete app excessive", "ada create_unverified app"]);
      expect(await house.counters()).toEqual({
        created: { "push:enabled:app": 11 },
        deleted: { "push:excessive": 1 },
      });
      expect(house.tokenEvents).toMatchObject({ created: 11, refreshed: 1, deleted_due_to_token_limit: 1 });
    });

    test(`${engine.name}: tokens seen at the same time go by the order in which they came, also for one that moves in`, async () => {
      await house.people("ada", "bob");
      await registerPushTokens(
        house.ctx,
        Array.from({ length: 10 }, (_, name) => by("ada", name)),
      );
      await registerPushTokens(house.ctx, [by("bob", "bobs")]);
      await registerPushTokens(house.ctx, [by("ada", "bobs")]);
      const held = Object.keys(await owners());
      expect(held).toHaveLength(10);
      expect(held).not.toContain(token(0));
      expect(held).toContain(token(9));
    });

    test(`${engine.name}: a batch has the effect of its registrations one after the other`, async () => {
      const batch = [
        by("ada", "a"),
        by("bob", "a"),
        by("ada", "a"),
        by("ada", "a"),
        ...Array.from({ length: 13 }, (_, name) => by("bob", name)),
        by("bob", 0),
        by("ada", 12),
      ];
      const seen = async () => ({
        owners: Object.entries(await owners()).sort(),
        stories: (await stories()).sort(),
        counters: await house.counters(),
        events: { ...house.tokenEvents },
      });
      await house.people("ada", "bob");
      const single: string[] = [];
      for (const registration of batch) single.push(...(await registerPushTokens(house.ctx, [registration])));
      const expected = await seen();
      await house.clear();
      await house.people("ada", "bob");
      expect(await registerPushTokens(house.ctx, batch)).toEqual(single);
      expect(await seen()).toEqual(expected);
    });

    test(`${engine.name}: two users who register one token at once leave one row and true counts`, async () => {
      await house.people("ada", "bob");
      for (let round = 0; round < 10; round++) {
        const outcomes = (
          await Promise.all([
            registerPushTokens(house.ctx, [by("ada", round)]),
            registerPushTokens(house.ctx, [by("bob", round)]),
          ])
        ).flat();
        expect(outcomes.sort()).toEqual(["created", "reassigned"]);
      }
      const rows = Object.keys(await owners()).length;
      expect(rows).toBe(10);
      expect(await house.counters()).toEqual({
        created: { "push:enabled:app": 20 },
        deleted: { "push:reassigned": 10 },
      });
    });

    test(`${engine.name}: registrations of many tokens for one user at once never exceed the limit`, async () => {
      await house.people("ada");
      await Promise.all(Array.from({ length: 24 }, (_, name) => registerPushTokens(house.ctx, [by("ada", name)])));
      expect(Object.keys(await owners())).toHaveLength(10);
      expect(await house.counters()).toEqual({
        created: { "push:enabled:app": 24 },
        deleted: { "push:excessive": 14 },
      });
      expect(await invariants[0]!.check(house.ctx)).toEqual([]);
    });

    test(`${engine.name}: crossed moves of tokens between users at once end in a consistent state`, async () => {
      await house.people("ada", "bob");
      await registerPushTokens(house.ctx, [by("ada", 1), by("bob", 2)]);
      await Promise.all([
        registerPushTokens(house.ctx, [by("ada", 2)]),
        registerPushTokens(house.ctx, [by("bob", 1)]),
        registerPushTokens(house.ctx, [by("ada", 1), by("ada", 2)]),
        deletePushTokens(house.ctx, [{ token: token(3), stage: "receipt" }]),
      ]);
      const { created, deleted } = (await house.counters()) as Record<string, Record<string, number>>;
      expect(Object.keys(await owners())).toHaveLength(2);
      expect(created!["push:enabled:app"]! - (deleted?.["push:reassigned"] ?? 0)).toBe(2);
    });

    test(`${engine.name}: tokens that the provider no longer knows go by value, and unknown ones do not count`, async () => {
      await house.people("ada", "bob");
      await registerPushTokens(house.ctx, [by("ada", 1), by("ada", 2), by("bob", 3)]);
      house.reminders.length = 0;
      const gone = await deletePushTokens(house.ctx, [
        { token: token(1), stage: "ticket" },
        { token: token(3), stage: "receipt" },
        { token: token("never"), stage: "receipt" },
      ]);
      expect([...gone].sort()).toEqual([token(1), token(3)].sort());
      expect(await owners()).toEqual({ [token(2)]: "ada" });
      expect(house.tokenEvents).toEqual({
        created: 3,
        deleted_due_to_unrecognized_ticket: 1,
        deleted_due_to_unrecognized_receipt: 1,
      });
      expect((await house.counters()).deleted).toEqual({ "push:device_not_registered": 2 });
      expect(house.reminders).toEqual(["-bob push:unreachable"]);
      expect((await stories()).slice(-2).sort()).toEqual([
        "ada delete provider DeviceNotRegistered",
        "bob delete provider DeviceNotRegistered",
      ]);
    });

    test(`${engine.name}: a hundred registrations take as many statements as one`, async () => {
      const subs = Array.from({ length: 100 }, (_, index) => `user${index}`);
      await house.people(...subs);
      const statements = async (batch: readonly TokenRegistration[]) => {
        const counting = new MortalSql(house.ctx.sql);
        // The stand-in for reminders asks user by user, which is none of the room's business.
        const takeAway = installEffects({ reminders: { reachChanged: async () => {} } });
        await registerPushTokens(house.with({ sql: counting }), batch);
        takeAway();
        return counting.sent;
      };
      expect(await statements(subs.map((sub, index) => by(sub, index)))).toBe(await statements([by("user1", "one")]));
      expect(await statements(subs.map((sub, index) => by(sub, index)))).toBe(await statements([by("user1", "one")]));
    });
  });

test("the job takes what the route gives it, and refuses what is no token", () => {
  const kwargs = { user_sub: "ada", expo_push_token: token(1), platform: "generic" };
  expect(createPushToken.kwargs.safeParse(kwargs).success).toBe(true);
  expect(createPushToken.kwargs.safeParse({ ...kwargs, expo_push_token: "ExpoPushToken[abc]" }).success).toBe(true);
  for (const expo_push_token of ["", "x", "ExponentPushToken[]", "ExponentPushToken[a b]", `${token(1)} `])
    expect(createPushToken.kwargs.safeParse({ ...kwargs, expo_push_token }).success).toBe(false);
});
