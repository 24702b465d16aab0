import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { expires, family, json, list, literal, string, text } from "../../kernel/keyspace/index.ts";
import { forgetSoon, type HandOverPlan, handOver, handOverGroup } from "./index.ts";

const Group = z.object({ uid: z.string(), items: z.array(z.string()) });
type Group = z.output<typeof Group>;
const keys = family("bells", {
  handover: list("bells:handover", json(Group), { doc: "groups to give away" }),
  taken: list("bells:taken", text, { doc: "what the other room took" }),
  known: string("bells:known:{group_uid}", literal("1"), { doc: "a group that it knows", ttl: expires(604_800) }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());

/** A room that takes a group once, in one step. */
const plan = (process: KernelContext): HandOverPlan<Group> => ({
  list: keys.handover(),
  codec: keys.handover.codec,
  accept: ({ uid, items }) =>
    process.redis.commands.eval(
      "if redis.call('SET', KEYS[1], 1, 'NX', 'EX', 604800) then redis.call('RPUSH', KEYS[2], unpack(ARGV)) end",
      2,
      keys.known({ group_uid: uid }),
      keys.taken(),
      ...items,
    ),
  forget: (uid) => forgetSoon(process, keys.known({ group_uid: uid })),
});

const raw = (uid: string, ...items: string[]) => JSON.stringify({ uid, items });

test("groups are taken once and in order, wherever either side dies", async () => {
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare: async () => {
      await ctx.flush();
      await ctx.redis.commands.rpush(keys.handover(), raw("a", "1", "2"), raw("b", "3"), raw("c", "4", "5"));
    },
    life: async (mortal) => {
      const process = ctx.process({ redis: mortal });
      await handOver(process, plan(process));
    },
    afterlife: async () => {
      const process = ctx.process({});
      await handOver(process, plan(process));
      const { commands } = ctx.redis;
      expect(await commands.lrange(keys.taken(), 0, -1)).toEqual(["1", "2", "3", "4", "5"]);
      expect(await commands.exists(keys.handover())).toBe(0);
    },
  });
  expect(deaths).toBeGreaterThan(10);
});

test("a giver that read a group and stood still, while another gave it away, gives nothing twice; the note of it ends soon", async () => {
  await ctx.flush();
  const { commands } = ctx.redis;
  await commands.rpush(keys.handover(), raw("a", "1", "2"), raw("b", "3"));
  const [slow, next] = [ctx.process({}), ctx.process({})];
  const offer = plan(slow);
  let asleep: (() => void) | undefined;
  const late = handOver(slow, {
    ...offer,
    async accept(group) {
      await new Promise<void>((wake) => {
        asleep ??= wake;
        if (asleep !== wake) wake();
      });
      return offer.accept(group);
    },
  });
  await eventually(() => asleep);
  await handOver(next, plan(next));
  asleep!();
  await late;
  expect(await commands.lrange(keys.taken(), 0, -1)).toEqual(["1", "2", "3"]);
  for (const group_uid of ["a", "b"]) {
    const left = await commands.ttl(keys.known({ group_uid }));
    expect(left).toBeGreaterThan(3500);
    expect(left).toBeLessThanOrEqual(3600);
  }
});

test("a group that was just written is handed over without being read, and leaves the others where they are", async () => {
  await ctx.flush();
  const { commands } = ctx.redis;
  await commands.rpush(keys.handover(), raw("a", "1"), raw("b", "2"));
  const process = ctx.process({});
  await handOverGroup(process, plan(process), { uid: "b", items: ["2"] }, raw("b", "2"));
  expect(await commands.lrange(keys.taken(), 0, -1)).toEqual(["2"]);
  expect(await commands.lrange(keys.handover(), 0, -1)).toEqual([raw("a", "1")]);
});
