import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { SigningKeySandbox } from "../../sandbox/signing-keys.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { verifyAppleIdToken, verifyCognitoToken } from "./service.ts";
import { settings } from "./settings.ts";

const AUDIENCE = "com.example.app";
const CLIENT = "client-1";
const expected = { audience: AUDIENCE, nonce: "nonce-1" };

let world: TestContext;
let sandbox: SigningKeySandbox;

beforeAll(async () => {
  world = await openTestContext();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.flush();
  sandbox = await SigningKeySandbox.start();
});
afterEach(() => sandbox.close());

/** A process of its own: no copy in memory yet. */
function process(): ReturnType<TestContext["process"]> {
  return world.process({
    config: world.config.with(
      [settings.appleBaseUrl, sandbox.url],
      [settings.cognitoBaseUrl, sandbox.url],
      [settings.cognitoPool, sandbox.pool],
      [settings.cognitoClient, CLIENT],
    ),
  });
}

const mint = (more: Partial<Parameters<SigningKeySandbox["mintApple"]>[0]> = {}) =>
  sandbox.mintApple({ ...expected, now: world.clock.now(), ...more });
const verify = (ctx: KernelContext, token: string) => verifyAppleIdToken(ctx, token, expected);

async function broken(): Promise<readonly string[]> {
  return (await Promise.all(invariants.map((invariant) => invariant.check(world)))).flat();
}

describe("an Apple id token", () => {
  it("verifies against keys that are fetched once for all processes", async () => {
    const token = await mint({ claims: { email: "a@example.com" } });
    const first = process();
    expect(await verify(first, token)).toMatchObject({ sub: "001122.sandbox", email: "a@example.com" });
    await verify(first, token);
    await verify(process(), token);
    expect(sandbox.fetches).toBe(1);
    const stored = keys.apple.codec.decode((await world.redis.commands.getBuffer(keys.apple()))!);
    expect(stored.map(({ kid }) => kid)).toEqual([sandbox.kid]);
    expect(await broken()).toEqual([]);
  });

  it("verifies after one refetch when its key was rotated in, and invented key ids cause no further one", async () => {
    const ctx = process();
    await verify(ctx, await mint());
    await world.clock.advance(110);
    await sandbox.rotate();
    await world.clock.advance(10);
    await verify(ctx, await mint());
    expect(sandbox.fetches).toBe(2);

    const others = [ctx, process(), process()];
    for (let i = 0; i < 1000; i++) {
      const invented = await mint({ kid: `invented-${i}` });
      await expect(verify(others[i % 3]!, invented)).rejects.toSatisfy(errors.unknown_key.matches);
      if (i % 20 === 19) await world.clock.advance(1);
    }
    expect(sandbox.fetches).toBe(2);

    await world.clock.advance(10);
    await expect(verify(ctx, await mint({ kid: "invented" }))).rejects.toSatisfy(errors.unknown_key.matches);
    expect(sandbox.fetches).toBe(3);
  });

  it("verifies with the copy that another process fetched after a rotation", async () => {
    const [one, two] = [process(), process()];
    await verify(one, await mint());
    await verify(two, await mint());
    await world.clock.advance(90);
    await sandbox.rotate();
    await verify(two, await mint());
    await verify(one, await mint());
    expect(sandbox.fetches).toBe(2);
  });

  it("is refused when anything about it is wrong", async () => {
    const ctx = process();
    const now = world.clock.now();
    const refused = [
      mint({ audience: "com.example.other" }),
      mint({ claims: { iss: "https://evil.example.com" } }),
      mint({ now: now - 3600 }),
      mint({ claims: { sub: undefined } }),
      Promise.resolve("not a token"),
      mint().then((token) => `${token.slice(0, -8)}AAAAAAAA`),
    ];
    for (const token of refused)
      await expect(verify(ctx, await token)).rejects.toSatisfy(errors.invalid_issuer_token.matches);
    for (const nonce of ["nonce-2", ""])
      await expect(verify(ctx, await mint({ nonce }))).rejects.toSatisfy(errors.nonce_mismatch.matches);
  });

  it.each([
    ["for encryption", { use: "enc" }],
    ["without RSA", { kty: "EC" }],
    ["for a symmetric algorithm", { alg: "HS256" }],
    ["for another algorithm than the token's", { alg: "RS512" }],
  ])("is refused when its key is published %s", async (_what, changes) => {
    sandbox.publish(changes);
    await expect(verify(process(), await mint())).rejects.toMatchObject({ status: 401 });
  });
});

describe("an issuer that does not answer", () => {
  it.each([
    ["answers 500", () => Object.assign(sandbox.faults, { status: 500 })],
    ["answers something else", () => Object.assign(sandbox.faults, { malformed: true })],
  ])("keeps the last copy in use for a day with a warning when it %s", async (_what, breakDown) => {
    const ctx = process();
    await verify(ctx, await mint());
    breakDown();
    await world.clock.advance(3700);
    expect(await verify(ctx, await mint())).toBeDefined();
    expect(ctx.alerts.identifiers()).toContain("signing_keys:stale:apple");
    expect(await world.redis.commands.exists(keys.apple())).toBe(0);
    const fetches = sandbox.fetches;
    for (let i = 0; i < 20; i++) await verify(ctx, await mint());
    expect(sandbox.fetches).toBe(fetches);

    await world.clock.advance(86_400);
    await expect(verify(ctx, await mint())).rejects.toMatchObject({
      code: "signing_keys_unavailable",
      status: 503,
      retryAfter: 5,
    });
  });

  it("leaves the copy in Redis as it was when a refetch gives something else", async () => {
    const ctx = process();
    await verify(ctx, await mint());
    const before = await world.redis.commands.get(keys.apple());
    await world.clock.advance(120);
    sandbox.faults.malformed = true;
    await expect(verify(ctx, await mint({ kid: "new" }))).rejects.toSatisfy(errors.unknown_key.matches);
    expect(sandbox.fetches).toBe(2);
    expect(await world.redis.commands.get(keys.apple())).toBe(before);
  });

  it("is given up after five seconds and asked again later", async () => {
    const ctx = process();
    const token = await mint();
    sandbox.faults.slow = true;
    const outcome = verify(ctx, token).catch((error: unknown) => error);
    await eventually(() => sandbox.fetches === 1);
    await world.clock.advance(5);
    expect(await outcome).toSatisfy(errors.signing_keys_unavailable.matches);
    sandbox.release();
    await world.clock.advance(5);
    expect(await verify(ctx, token)).toBeDefined();
  });
});

describe("a Cognito token", () => {
  it("verifies as id or access token of the pool's client, and for no other client", async () => {
    const ctx = process();
    const now = world.clock.now();
    for (const use of ["id", "access"] as const) {
      const token = await sandbox.mintCognito({ now, client: CLIENT, use });
      expect(await verifyCognitoToken(ctx, token)).toMatchObject({ sub: "sandbox-user", token_use: use });
      const foreign = await sandbox.mintCognito({ now, client: "client-2", use });
      await expect(verifyCognitoToken(ctx, foreign)).rejects.toSatisfy(errors.invalid_issuer_token.matches);
    }
    await expect(verifyCognitoToken(ctx, await mint())).rejects.toMatchObject({ status: 401 });
    expect(await world.redis.commands.pttl(keys.cognito())).toBeGreaterThan(3_590_000);
  });

  it("is not accepted where no pool is configured", async () => {
    await expect(verifyCognitoToken(world, await mint())).rejects.toMatchObject({ code: "issuer_not_configured" });
  });
});

describe("copies of signing keys", () => {
  it("are reported by the audit when they are no list or never expire", async () => {
    await world.redis.commands.set(keys.apple(), "{}");
    expect(await broken()).toHaveLength(2);
  });
});
