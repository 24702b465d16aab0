import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { expires, family, json, list, string, text } from "../../kernel/keyspace/index.ts";
import { Locks, ownerLock, unlessFenced } from "../lock/index.ts";
import { listQuarantined } from "../quarantine/index.ts";
import { purgatoryQueue, runBatches } from "./index.ts";

const keys = family("bells", {
  toSend: list("bells:to_send", json(z.object({ n: z.int() })), { doc: "waiting" }),
  purgatory: list("bells:send_purgatory", json(z.object({ n: z.int() })), { doc: "being sent" }),
  sent: list("bells:sent", text, { doc: "sent" }),
  lock: string("bells:lock", ownerLock, { doc: "the sender", ttl: expires(120), lock: "owner" }),
});
const bells = purgatoryQueue({ queue: keys.toSend(), purgatory: keys.purgatory(), codec: keys.toSend.codec });

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());

/** A job as the channels have it: under a lock, in batches of 2, one of them settled with its effects. */
async function send(process: KernelContext, attempted: number[]): Promise<number> {
  return new Locks(process).withLock(keys.lock(), { kind: "owner", wait: "fail" }, async ({ fence }) => {
    const result = await runBatches(process, {
      runner: "runners.bells.send",
      shuttingDown: () => false,
      exhausted: () => false,
      claim: (first) => bells.claimBatch(process, fence, first, 2),
      handle: async (batch) => {
        const entries = await bells.read(process, 0, batch.size);
        const ns = entries.map((entry) => entry.value.n);
        attempted.push(...ns);
        unlessFenced(
          await bells.ackWith(process, fence, entries.length, [
            { kind: "push", key: keys.sent(), items: ns.map(String) },
          ]),
        );
        return undefined;
      },
    });
    return result.recovered;
  });
}

test("a sender that dies at any command loses nothing, settles nothing twice, and repeats at most one batch", async () => {
  let attempted: number[] = [];
  const recoveries: number[] = [];
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare: async () => {
      await ctx.flush();
      attempted = [];
      await bells.pushRaw(ctx, ['{"n":1}', '{"n":2}', '{"n":3}', "broken", '{"n":5}']);
    },
    life: async (mortal) => {
      await send(ctx.process({ redis: mortal }), attempted);
    },
    afterlife: async () => {
      await ctx.clock.advance(120);
      recoveries.push(await send(ctx, attempted));
      expect(await ctx.redis.commands.lrange(keys.sent(), 0, -1)).toEqual(["1", "2", "3", "5"]);
      expect(attempted.length).toBeLessThanOrEqual(6);
      expect(await ctx.redis.commands.exists(keys.toSend(), keys.purgatory(), keys.lock())).toBe(0);
      expect((await listQuarantined(ctx, keys.toSend())).length).toBe(1);
    },
  });
  expect(deaths).toBeGreaterThan(20);
  expect(recoveries).toContain(2);
  expect(recoveries).toContain(0);
});
