import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { domain } from "../../domain.ts";
import { settings as kinds } from "../../kernel/config.ts";
import { expires, family, integer, list, string, text } from "../../kernel/keyspace/index.ts";
import { type JobServer, openJobServer } from "../jobs/jobs.fixture.ts";
import { operations } from "./index.ts";
import { auditKeyspace, auditLock } from "./jobs.ts";
import { AUDIT_KEPT, keys } from "./keys.ts";

const bells = family("bells", {
  toRing: list("bells:to_ring", text, { doc: "bells that wait to be rung" }),
  weight: string("bells:weight:{name}", integer, { doc: "how heavy a bell is", ttl: expires(60) }),
  weightOf: string("bells:weight:{name}:by", text, { doc: "who weighed it", ttl: expires(60) }),
  token: string("bells:token:{token}", text, { doc: "opens the tower", ttl: expires(60), secret: true }),
});
const tower = domain({
  name: "bells",
  keys: [bells],
  invariants: [{ name: "bells:few", doc: "few bells wait", check: async () => ["too many bells wait"] }],
});
const height = kinds.integer("tower.height", { default: 40, unit: "m", doc: "how high the tower is" });
const password = kinds.text("tower.password", { default: "", doc: "opens the tower", secret: true });

let server: JobServer;
const admin = (method: string, path: string, body?: unknown) =>
  server.call(method, path, { token: server.admin, ...(body === undefined ? {} : { body }) });

beforeAll(async () => {
  server = await openJobServer({
    domains: [operations, tower],
    runners: [auditKeyspace],
    settings: [
      [height, 60],
      [password, "hunter2"],
    ],
  });
});
beforeEach(() => server.ctx.flush());
afterAll(() => server.close());

/** Asks for an audit, lets a worker do it, and answers what it told. */
async function audited(body: object = {}) {
  const asked = await admin("POST", "/api/1/admin/keys/audit", body);
  expect(asked.statusCode).toBe(202);
  const { uid } = asked.json();
  const worker = server.worker();
  await worker.start();
  const ended = async () => (await server.jobs.progress.read(uid))?.done === true;
  while (!(await ended())) await server.ctx.clock.advance(0.25);
  await worker.stop();
  return (await server.jobs.progress.read(uid))!.events;
}

test("an audit runs in a worker, tells how far it is, and its counts and findings are read until a week is over", async () => {
  const { commands } = server.ctx.redis;
  expect((await admin("GET", "/api/1/admin/keys/audit")).json()).toEqual({ audit: null });
  await commands.rpush(bells.toRing(), "Emmanuel", "Marie");
  await commands.set(bells.weight({ name: "marie" }), "6023");
  await commands.set(bells.token({ token: "s3cret" }), "x");
  await commands.set("stranger", "x");
  const events = await audited({ deep: true });
  expect(events.some(({ indicator }) => indicator?.type === "bar")).toBe(true);
  expect(events.at(-1)).toMatchObject({ type: "succeeded" });

  const answer = await admin("GET", "/api/1/admin/keys/audit");
  const { audit } = answer.json();
  expect(audit).toMatchObject({ ok: false, deep: true });
  const usage = audit.patterns.find(({ pattern }: { pattern: string }) => pattern === "bells:to_ring");
  expect(usage).toMatchObject({ keys: 1, length: 2, family: "bells" });
  expect(usage.bytes).toBeGreaterThan(0);
  expect(audit.findings).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "missing_ttl", pattern: "bells:weight:{name}", key: "bells:weight:marie" }),
      expect.objectContaining({ kind: "missing_ttl", pattern: "bells:token:{token}", key: null }),
      expect.objectContaining({ kind: "unknown_key", key: "stranger" }),
      expect.objectContaining({ kind: "broken_invariant", detail: "too many bells wait" }),
    ]),
  );
  expect(answer.body).not.toContain("s3cret");
  expect(await commands.ttl(keys.lastAudit())).toBeGreaterThan(AUDIT_KEPT - 60);
  await commands.set(keys.lastAudit(), "not an audit");
  expect((await admin("GET", "/api/1/admin/keys/audit")).json()).toEqual({ audit: null });
});

test("while an audit runs, a second one ends at once and leaves no result", async () => {
  await server.ctx.locks.withLock(auditLock, { kind: "owner", wait: "fail" }, async () => {
    const events = await audited();
    expect(events.at(-1)).toMatchObject({ type: "succeeded", message: "skipped: another run is under way" });
  });
  expect((await admin("GET", "/api/1/admin/keys/audit")).json()).toEqual({ audit: null });
});

test("a pattern is shown with some of its keys, never with those of a secret one", async () => {
  const { commands } = server.ctx.redis;
  const examples = async (pattern: string, limit = 20) =>
    (await admin("GET", `/api/1/admin/keys/examples?pattern=${encodeURIComponent(pattern)}&limit=${limit}`)).json();
  expect(await examples("bells:to_ring")).toEqual({ items: [], complete: true });
  await commands.rpush(bells.toRing(), "Emmanuel");
  expect(await examples("bells:to_ring")).toEqual({ items: ["bells:to_ring"], complete: true });
  await commands.mset(
    bells.weight({ name: "a" }),
    1,
    bells.weight({ name: "b" }),
    2,
    bells.weightOf({ name: "a" }),
    "c",
  );
  const { items, complete } = await examples("bells:weight:{name}");
  expect([items.sort(), complete]).toEqual([["bells:weight:a", "bells:weight:b"], true]);
  expect(await examples("bells:weight:{name}", 1)).toMatchObject({ items: [expect.any(String)], complete: false });
  await commands.set(bells.token({ token: "s3cret" }), "x");
  expect(await examples("bells:token:{token}")).toEqual({ items: [], complete: false });
  expect(await examples("nobody:declared:this")).toEqual({ items: [], complete: false });
});

test("settings are shown with their value, source and meaning, and secrets only as set", async () => {
  const answer = await admin("GET", "/api/1/admin/settings");
  const named = (name: string) => answer.json().items.find((item: { name: string }) => item.name === name);
  expect(named("tower.height")).toEqual({
    name: "tower.height",
    env: "CARILLON_TOWER_HEIGHT",
    value: 60,
    default: 40,
    source: "override",
    unit: "m",
    secret: false,
    doc: "how high the tower is",
  });
  expect(named("tower.password")).toMatchObject({ value: "********", secret: true });
  expect(answer.body).not.toContain("hunter2");
});
