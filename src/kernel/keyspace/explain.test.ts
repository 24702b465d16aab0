import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { Catalogue } from "./catalogue.ts";
import { integer, json, text } from "./codec.ts";
import { channel, expires, list, string, zset } from "./declare.ts";
import { explain } from "./explain.ts";
import { family } from "./family.ts";
import { shownName } from "./secrecy.ts";

const keys = family("sms", {
  toSend: list("sms:to_send", json(z.object({ uid: z.string() })), { doc: "texts waiting to be sent" }),
  flag: string("sms:flag:{sid}", integer, { doc: "a flag", ttl: expires(600), origin: "carillon" }),
  code: string("sms:codes:{phone}", text, { doc: "codes", secret: true }),
  later: zset("sms:later", text, { doc: "texts for later", score: "unix seconds" }),
  purge: channel("ps:sms:{topic}", text, { doc: "purges" }),
});
const catalogue = new Catalogue([{ name: "messages", keys: [keys] }]);

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

test("a concrete key is explained with its pattern, meaning and decoded value", async () => {
  await ctx.redis.commands.set("sms:flag:SM1", "7", "EX", 300);
  const found = await explain(catalogue, "sms:flag:SM1", ctx);
  expect(found).toMatchObject({
    known: true,
    kind: "key",
    pattern: "sms:flag:{sid}",
    parameters: { sid: "SM1" },
    type: "string",
    family: "sms",
    domain: "messages",
    ttl: "at most 10 min",
    origin: "carillon",
    doc: "a flag",
    live: { exists: true, type: "string", value: 7, complete: true },
  });
});

test("of a long collection only a few elements are shown", async () => {
  await ctx.redis.commands.rpush("sms:to_send", ...Array.from({ length: 500 }, (_, n) => `{"uid":"${n}"}`));
  const found = await explain(catalogue, "sms:to_send", ctx);
  expect(found.known && found.live).toMatchObject({ length: 500, complete: false });
  expect(found.known && found.live?.exists && found.live.value).toHaveLength(10);
});

test("members of a sorted set are shown with their scores", async () => {
  await ctx.redis.commands.zadd("sms:later", 20.5, "b", 10, "a");
  const found = await explain(catalogue, "sms:later", ctx);
  expect(found.known && found.live).toMatchObject({ value: ["a", "b"], scores: [10, 20.5], complete: true });
});

test("an absent key, a wrong type and an undecodable value are said plainly", async () => {
  expect(await explain(catalogue, "sms:to_send", ctx)).toMatchObject({ live: { exists: false } });
  await ctx.redis.commands.set("sms:to_send", "x");
  expect(await explain(catalogue, "sms:to_send", ctx)).toMatchObject({
    live: { note: expect.stringMatching(/is a string/) },
  });
  await ctx.redis.commands.set("sms:flag:1", "x");
  expect(await explain(catalogue, "sms:flag:1", ctx)).toMatchObject({
    live: { note: expect.stringMatching(/undecodable/) },
  });
});

test("the value of a secret pattern is neither shown nor read, and its name is not repeated", async () => {
  await ctx.redis.commands.set("sms:codes:+15551234567", "123456");
  await ctx.redis.commands.call("CONFIG", "RESETSTAT");
  const found = await explain(catalogue, "sms:codes:+15551234567", ctx);
  expect(found).toMatchObject({
    secret: true,
    parameters: null,
    live: { exists: true, note: expect.stringMatching(/withheld/) },
  });
  expect(JSON.stringify(found)).not.toMatch(/123456|1555/);
  expect(await ctx.redis.commands.info("commandstats")).not.toMatch(/cmdstat_(get|evalsha_ro):/);
});

test("a pattern, a channel and a name with a Cluster's tag are explained too", async () => {
  expect(await explain(catalogue, "sms:flag:{sid}", ctx)).toMatchObject({ pattern: "sms:flag:{sid}", live: undefined });
  expect(await explain(catalogue, "ps:sms:all", ctx)).toMatchObject({ kind: "channel", parameters: { topic: "all" } });
  expect(await explain(catalogue, "{sms}:sms:flag:1", ctx)).toMatchObject({ pattern: "sms:flag:{sid}" });
});

test("for a name that nothing fits the nearest patterns are offered", async () => {
  const found = await explain(catalogue, "sms:to_sned");
  expect(found).toMatchObject({ known: false, name: "sms:to_sned" });
  expect(!found.known && found.near[0]?.pattern).toBe("sms:to_send");
  const far = await explain(catalogue, "nothing:like:it:at:all");
  expect(!far.known && far.near).toEqual([]);
});

test("a name is shown as its pattern when the pattern is secret", () => {
  expect(shownName(catalogue, "sms:codes:+1555")).toBe("sms:codes:{phone}");
  expect(shownName(catalogue, "sms:flag:1")).toBe("sms:flag:1");
  expect(shownName(catalogue, "unheard:of")).toBe("unheard:of");
});
