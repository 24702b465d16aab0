import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { notes as room } from "../../docs/examples/notes/index.ts";
import { invariants } from "../../docs/examples/notes/invariants.ts";
import { expireNotes } from "../../docs/examples/notes/jobs.ts";
import { keys } from "../../docs/examples/notes/keys.ts";
import { settleDue } from "../../docs/examples/notes/scripts.ts";
import { expireDue, keepNote, listNotes, writeNote } from "../../docs/examples/notes/service.ts";
import type { NoteTables } from "../../docs/examples/notes/tables.ts";
import { mintAccessToken } from "../../src/infrastructure/access/service.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { audit, Catalogue } from "../../src/kernel/keyspace/index.ts";
import { migrate, timestamp } from "../../src/kernel/sql/index.ts";
import { usersDomain } from "../../src/people/users/index.ts";
import { createUser, deleteUser } from "../../src/people/users/service.ts";
import { dieAtEveryCommand } from "../harness/chaos.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { openTestServer, type TestServer } from "../harness/http.ts";
import { jobProcess } from "../harness/jobs.ts";
import { passTimeUntil } from "../harness/time.ts";

const HOUR = 3600;

describe("the notes of the example", () => {
  let house: TestContext;
  let userId = 0;

  beforeAll(async () => {
    house = await openTestContext({ sql: true });
    await migrate(
      house.sql,
      [usersDomain(() => []), room].map(({ name, migrations }) => ({ domain: name, migrations: migrations ?? [] })),
    );
    userId = (await createUser(jobProcess(house, { runners: [] }).ctx, [], { sub: "ada" })).id;
  });
  beforeEach(async () => {
    await house.flush();
    await house.sql.tables<NoteTables>().deleteFrom("notes").execute();
  });
  afterAll(() => house.close());

  const write = (expiresIn = HOUR, ctx: KernelContext = house) => writeNote(ctx, { userId, text: "milk", expiresIn });
  const rows = () => house.sql.tables<NoteTables>().selectFrom("notes").selectAll().execute();
  const alarms = () => house.redis.commands.zrange(keys.alarms(), "0", "-1");
  const faults = async () => (await Promise.all(invariants.map((invariant) => invariant.check(house)))).flat();

  test("a note is there until its time is over, and then goes with its alarm", async () => {
    const { uid } = await write();
    await house.clock.advance(HOUR - 1);
    expect(await expireDue(house)).toBe(0);
    expect((await listNotes(house, userId, { limit: 10 })).notes.map((note) => note.uid)).toEqual([uid]);
    await house.clock.advance(2);
    expect((await listNotes(house, userId, { limit: 10 })).notes).toEqual([]);
    expect(await expireDue(house)).toBe(1);
    expect([await rows(), await alarms()]).toEqual([[], []]);
  });

  test("a note that is kept outlives its first alarm, which is then set to the new time", async () => {
    const { uid } = await write();
    const kept = await keepNote(house, userId, uid, 3 * HOUR);
    await keepNote(house, userId, uid, 60);
    await house.clock.advance(HOUR + 1);
    expect(await expireDue(house)).toBe(1);
    expect(await rows()).toHaveLength(1);
    expect(Number(await house.redis.commands.zscore(keys.alarms(), uid))).toBeCloseTo(kept.expires_at, 3);
    await house.clock.advance(2 * HOUR);
    await expireDue(house);
    expect([await rows(), await alarms()]).toEqual([[], []]);
  });

  test("an alarm that was set later meanwhile is left alone", async () => {
    const { uid } = await write();
    const now = house.clock.now();
    expect(await house.redis.run(settleDue, [keys.alarms()], [now, uid, "", "crl_note_unknown", ""])).toEqual([
      false,
      false,
    ]);
    expect(await alarms()).toEqual([uid]);
  });

  test("the recurring job empties what is due within a minute", async () => {
    const fleet = jobProcess(house, { runners: room.runners, recurring: room.recurring });
    await write(60);
    await fleet.worker.start();
    const seconds = await passTimeUntil(house, async () => (await rows()).length === 0, { limit: 200 });
    expect(seconds).toBeLessThanOrEqual(60 + 60 + 5);
    await fleet.worker.stop();
    expect(fleet.jobs.recurring.digestOf(expireNotes.name, {})).toMatch(/^\d+$/);
  });

  test("a process that dies at any command leaves notes with alarms, and the next run ends what is due", async () => {
    const deaths = await dieAtEveryCommand(house.server, {
      prepare: async () => {
        await house.flush();
        await house.sql.tables<NoteTables>().deleteFrom("notes").execute();
      },
      life: async (redis) => {
        const ctx = house.process({ redis });
        const { uid } = await write(60, ctx);
        await write(HOUR, ctx);
        await keepNote(ctx, userId, uid, 2 * HOUR);
        await house.clock.advance(61);
        await expireDue(ctx);
        await house.clock.advance(HOUR);
        await expireDue(ctx);
      },
      afterlife: async () => {
        expect(await faults()).toEqual([]);
        await house.clock.advance(3 * HOUR);
        while ((await expireDue(house)) > 0);
        expect([await rows(), await alarms()]).toEqual([[], []]);
      },
    });
    expect(deaths).toBeGreaterThanOrEqual(8);
  });

  test("the audit finds a note without an alarm and an alarm that rings too late, and nothing else", async () => {
    const [lost, late] = [await write(), await write()];
    const examine = () => audit(house, new Catalogue([room]), { invariants });
    expect((await examine()).findings).toEqual([]);
    await house.redis.commands.zrem(keys.alarms(), lost.uid);
    await house.redis.commands.zincrby(keys.alarms(), 60, late.uid);
    expect(await faults()).toEqual([`note ${lost.uid} has no alarm`, `the alarm of note ${late.uid} rings too late`]);
    expect((await examine()).findings).toHaveLength(2);
  });

  test("pages of notes do not shift when a note between them goes", async () => {
    const written = [await write(), await write(), await write(), await write()].map(({ uid }) => uid).reverse();
    const first = await listNotes(house, userId, { limit: 2 });
    expect(first.notes.map(({ uid }) => uid)).toEqual(written.slice(0, 2));
    await house.sql
      .tables<NoteTables>()
      .updateTable("notes")
      .set({ expires_at: timestamp(house.clock.now()) })
      .where("uid", "=", written[0]!)
      .execute();
    const second = await listNotes(house, userId, { limit: 2, before: first.next });
    expect(second.notes.map(({ uid }) => uid)).toEqual(written.slice(2));
    expect(second.next).toBeUndefined();
  });
});

describe("the routes of the example", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer({ domains: [room] });
  });
  afterAll(() => server.close());

  async function signIn(sub: string): Promise<string> {
    await createUser(server.ctx, server.domains, { sub });
    return (await mintAccessToken(server.ctx, sub, HOUR))!.token;
  }

  test("people write, list and keep their own notes, and reach no others", async () => {
    const [ada, bob] = [await signIn("ada"), await signIn("bob")];
    const written = await server.call("POST", "/api/1/users/me/notes", { token: ada, body: { text: " milk " } });
    expect(written.statusCode).toBe(201);
    const { uid, text, expires_at } = written.json();
    expect(text).toBe("milk");
    const keep = `/api/1/users/me/notes/${uid}/keep`;
    const kept = await server.call("POST", keep, { token: ada, body: { expires_in: 172_800 } });
    expect(kept.json().expires_at).toBeGreaterThan(expires_at);
    expect((await server.call("POST", keep, { token: bob, body: {} })).json().type).toBe("note_not_found");
    expect((await server.call("GET", "/api/1/users/me/notes", { token: bob })).json()).toEqual({
      items: [],
      next: null,
    });
    expect((await server.call("GET", "/api/1/users/me/notes", { token: ada })).json().items).toEqual([kept.json()]);
    expect((await server.call("GET", "/api/1/users/me/notes")).statusCode).toBe(401);
    const empty = await server.call("POST", "/api/1/users/me/notes", { token: ada, body: { text: "  " } });
    expect(empty.statusCode).toBe(422);
  });

  test("a deleted user's notes go in the same transaction", async () => {
    const token = await signIn("carol");
    await server.call("POST", "/api/1/users/me/notes", { token, body: { text: "gone" } });
    await deleteUser(server.ctx, server.domains, "carol");
    const left = await server.ctx.sql.tables<NoteTables>().selectFrom("notes").select("text").execute();
    expect(left.map(({ text }) => text)).not.toContain("gone");
  });
});
