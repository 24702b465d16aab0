import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { Context } from "../../jobs/context.ts";
import { Config } from "../../kernel/config.ts";
import { migrate } from "../../kernel/sql/index.ts";
import {
  createAdminToken,
  deriveKey,
  listAdminTokens,
  revokeAdminToken,
  signToken,
  verifyAdminToken,
  verifyToken,
  withoutSecrets,
  withRootSecret,
} from "./service.ts";
import { settings } from "./settings.ts";
import { type AccessTables, migrations } from "./tables.ts";

let base: TestContext;
let ctx: Context;
let directory: string;
beforeAll(async () => {
  base = await openTestContext({ sql: true });
  await migrate(base.sql, [{ domain: "access", migrations }]);
  ctx = contextWith("the root secret of these tests, long enough");
});
afterAll(() => base.close());
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "carillon-access-"));
  await base.sql.tables<AccessTables>().deleteFrom("admin_tokens").execute();
});
afterEach(() => rmSync(directory, { recursive: true }));

function contextWith(rootSecret: string): Context {
  const config = new Config([]).with([settings.rootSecret, rootSecret]);
  return Object.create(base, { config: { value: config } }) as Context;
}

test("a token proves its subject and claims to its audience until it expires", async () => {
  const jwt = await signToken(ctx, {
    audience: "carillon-file-upload",
    subject: "crl_s3fu_1",
    expiresIn: 1800,
    claims: { parts: 3 },
  });
  const now = base.clock.now();
  expect(await verifyToken(ctx, "carillon-file-upload", jwt)).toMatchObject({
    ok: true,
    subject: "crl_s3fu_1",
    issuedAt: now,
    expiresAt: now + 1800,
    claims: { iss: "carillon", aud: "carillon-file-upload", parts: 3 },
  });
  await base.clock.advance(1799);
  expect(await verifyToken(ctx, "carillon-file-upload", jwt)).toMatchObject({ ok: true });
  await base.clock.advance(2);
  expect(await verifyToken(ctx, "carillon-file-upload", jwt)).toEqual({ ok: false, reason: "expired" });
});

test("a token is worthless for other audiences, other installations and after the smallest change", async () => {
  const jwt = await signToken(ctx, { audience: "carillon-job-progress", subject: "a", expiresIn: 60 });
  const refused = { ok: false, reason: "invalid" };
  expect(await verifyToken(ctx, "carillon-access", jwt)).toEqual(refused);
  expect(
    await verifyToken(contextWith("another root secret, just as long as it"), "carillon-job-progress", jwt),
  ).toEqual(refused);
  const [head, payload, signature] = jwt.split(".") as [string, string, string];
  const forged = Buffer.from(Buffer.from(payload, "base64url").toString().replace('"a"', '"b"')).toString("base64url");
  for (const bad of ["", "x", `${head}.${forged}.${signature}`, `${head}.${payload}.`, `${jwt}x`])
    expect([bad, await verifyToken(ctx, "carillon-job-progress", bad)]).toEqual([bad, refused]);
});

test("a token without issuer, audience, subject or end is refused even with the right signature", async () => {
  const key = deriveKey(ctx, "carillon-access");
  const now = base.clock.now();
  const complete = { iss: "carillon", aud: "carillon-access", sub: "a", iat: now, exp: now + 60, jti: "j" };
  const sign = (claims: object) => new SignJWT({ ...claims }).setProtectedHeader({ alg: "HS256" }).sign(key);
  expect(await verifyToken(ctx, "carillon-access", await sign(complete))).toMatchObject({ ok: true });
  for (const missing of Object.keys(complete)) {
    const claims = Object.fromEntries(Object.entries(complete).filter(([name]) => name !== missing));
    expect([missing, await verifyToken(ctx, "carillon-access", await sign(claims))]).toEqual([
      missing,
      { ok: false, reason: "invalid" },
    ]);
  }
});

test("keys of different purposes differ, and one purpose has one key", () => {
  const again = contextWith("the root secret of these tests, long enough");
  expect(deriveKey(ctx, "one")).toEqual(deriveKey(again, "one"));
  expect(deriveKey(ctx, "one")).not.toEqual(deriveKey(ctx, "two"));
  expect(deriveKey(ctx, "one")).toHaveLength(32);
});

test("the first start makes a root secret that only its owner can read, and later starts find it", () => {
  const first = withRootSecret(new Config([]), join(directory, "data"));
  const path = join(directory, "data", "root_secret");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(first.get(settings.rootSecret)).toBe(readFileSync(path, "utf8").trim());
  expect(withRootSecret(new Config([]), join(directory, "data")).get(settings.rootSecret)).toBe(
    first.get(settings.rootSecret),
  );
  expect(readdirSync(join(directory, "data"))).toEqual(["root_secret"]);
});

test("a root secret that is set is used as it is; a short, damaged or missing one stops the start", () => {
  const set = new Config([]).with([settings.rootSecret, "x".repeat(32)]);
  expect(withRootSecret(set, directory)).toBe(set);
  expect(readdirSync(directory)).toEqual([]);
  const short = new Config([]).with([settings.rootSecret, "short"]);
  expect(() => withRootSecret(short, directory)).toThrow(/CARILLON_ROOT_SECRET must have at least 32/);
  const production = new Config([]).with([settings.environment, "production"]);
  expect(() => withRootSecret(production, directory)).toThrow(
    expect.objectContaining({ code: "root_secret_required" }),
  );
  writeFileSync(join(directory, "root_secret"), "cut");
  expect(() => withRootSecret(new Config([]), directory)).toThrow(/holds no root secret/);
});

test("an admin token works from creation to revocation and is kept nowhere", async () => {
  const made = await createAdminToken(ctx, { label: "deploy" });
  expect(made.token).toMatch(/^crl_admin_[A-Za-z0-9_-]{22}$/);
  expect(await verifyAdminToken(ctx, made.token)).toEqual({ ok: true, uid: made.uid });
  const rows = await base.sql.tables<AccessTables>().selectFrom("admin_tokens").selectAll().execute();
  expect(JSON.stringify(rows)).not.toContain(made.token);
  await revokeAdminToken(ctx, made.uid);
  expect(await verifyAdminToken(ctx, made.token)).toEqual({ ok: false, reason: "revoked" });
  await expect(revokeAdminToken(ctx, made.uid)).rejects.toMatchObject({ code: "admin_token_not_found" });
});

test("a revocation elsewhere takes effect within ten seconds", async () => {
  const made = await createAdminToken(ctx, { label: "elsewhere" });
  await verifyAdminToken(ctx, made.token);
  await base.sql
    .tables<AccessTables>()
    .updateTable("admin_tokens")
    .set({ revoked_at: new Date(0) })
    .execute();
  await base.clock.advance(9);
  expect(await verifyAdminToken(ctx, made.token)).toMatchObject({ ok: true });
  await base.clock.advance(1);
  expect(await verifyAdminToken(ctx, made.token)).toEqual({ ok: false, reason: "revoked" });
});

test("tokens are listed newest first with their last use, page by page, and never with their hash", async () => {
  const made = [];
  for (const label of ["a", "b", "c"]) made.push(await createAdminToken(ctx, { label }));
  await verifyAdminToken(ctx, made[2]!.token);
  const used = base.clock.now();
  await base.clock.advance(30);
  await verifyAdminToken(ctx, made[2]!.token);
  const one = await listAdminTokens(ctx, { limit: 2 });
  expect(one.tokens.map(({ label, last_used_at }) => [label, last_used_at])).toEqual([
    ["c", used],
    ["b", null],
  ]);
  const two = await listAdminTokens(ctx, { limit: 2, before: one.next });
  expect([two.tokens.map(({ label }) => label), two.next]).toEqual([["a"], undefined]);
  expect(JSON.stringify([one, two])).not.toMatch(/hash|crl_admin/);
  await base.clock.advance(31);
  await verifyAdminToken(ctx, made[2]!.token);
  expect((await listAdminTokens(ctx, { limit: 1 })).tokens[0]!.last_used_at).toBe(base.clock.now());
});

test("details of the audit log lose whatever is named like a secret, at any depth", () => {
  const hidden = withoutSecrets({
    label: "x".repeat(300),
    new_password: "a",
    deep: [{ apiKey: "b", list: [{ jwt: "c", kept: 1 }] }],
    bytes: Buffer.alloc(5),
    many: Array.from({ length: 60 }, (_, index) => index),
  }) as Record<string, unknown>;
  expect(hidden).toMatchObject({
    new_password: "[redacted]",
    deep: [{ apiKey: "[redacted]", list: [{ jwt: "[redacted]", kept: 1 }] }],
    bytes: "(5 bytes)",
  });
  expect((hidden.label as string).length).toBe(257);
  expect((hidden.many as unknown[]).length).toBe(50);
});
