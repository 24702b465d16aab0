import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { family, json, list, set, text } from "../../kernel/keyspace/index.ts";
import { type HandOverPlan, handOver, handOverGroup } from "./index.ts";

const Group = z.object({ uid: z.string(), items: z.array(z.string()) });
type Group = z.output<typeof Group>;
const keys = family("bells", {
  handover: list("bells:handover", json(Group), { doc: "groups to give away" }),
  taken: list("bells:taken", text, { doc: "what the other room took" }),
  known: set("bells:known", text, { doc: "the groups that it knows" }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());

/** A room that takes a group once, in one step. */
const plan = ({ redis: { commands } }: KernelContext): HandOverPlan<Group> => ({
  list: keys.handover(),
  codec: keys.handover.codec,
  accept: ({ uid, items }) =>
    commands.eval(
      "if redis.call('SADD', KEYS[1], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[2], unpack(ARGV, 2)) end",
      2,
      keys.known(),
      keys.taken(),
      uid,
      ...items,
    ),
  forget: async (uid) => void (await commands.srem(keys.known(), uid)),
});

const raw = (uid: string, ...items: string[]) => JSON.stringify({ uid, items });

test("groups are taken once and in order, wherever either side dies, and nothing is remembered of them", async () => {
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
      // A death between removing a group and forgetting it leaves a note, which ends by itself in a real room.
      expect(await commands.scard(keys.known())).toBeLessThanOrEqual(1);
    },
  });
  expect(deaths).toBeGreaterThan(10);
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
