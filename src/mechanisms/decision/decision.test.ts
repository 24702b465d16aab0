import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { family } from "../../kernel/keyspace/index.ts";
import { DECISION_MS, DECISION_TTL, decidedOf, decisionFlags } from "./index.ts";

const keys = family("bells", { decided: decisionFlags("bells") });
const flag = keys.decided({ message_uid: "crl_bell_1", stage: "send", try: 0 });

/** The fragment with the smallest script around it. */
const fragment = readFileSync(new URL("./scripts/decide.lua", import.meta.url), "utf8");
const around = `${fragment}
local stored = decide(KEYS[1], ARGV[1], ARGV[2])
return { stored and 0 or 1, stored or ARGV[1] }`;

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());
beforeEach(() => ctx.flush());

test("the first decision stands for two days, whoever asks again and whatever they would decide", async () => {
  expect(flag).toBe("bells:decided:crl_bell_1:send:0");
  const ask = async (decision: string) =>
    decidedOf((await ctx.redis.commands.eval(around, 1, flag, decision, DECISION_MS)) as [number, string]);
  const answers = await Promise.all([ask("abandon"), ask("retry"), ask("retry")]);
  expect(answers.filter(({ fresh }) => fresh)).toHaveLength(1);
  expect(new Set(answers.map(({ decision }) => decision)).size).toBe(1);
  expect(await ctx.redis.commands.pttl(flag)).toBeGreaterThan((DECISION_TTL - 2) * 1000);
  await ctx.clock.advance(DECISION_TTL - 10);
  expect((await ask("retry")).fresh).toBe(false);
  await ctx.clock.advance(11);
  expect(await ask("retry")).toEqual({ fresh: true, decision: "retry" });
});
