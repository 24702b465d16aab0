import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { Catalogue, family, list, string, text, zset } from "../../kernel/keyspace/index.ts";
import {
  discardQuarantined,
  listQuarantined,
  quarantinedQueues,
  quarantineEntry,
  quarantineErrors,
  quarantineKeys,
  quarantineOf,
  requeueQuarantined,
} from "./index.ts";

const keys = family("bells", {
  toSend: list("bells:to:send", text, { doc: "waiting" }),
  due: zset("bells:due", text, { doc: "waiting", score: "when" }),
  name: string("bells:name", text, { doc: "not a queue" }),
});
const catalogue = new Catalogue([{ name: "bells", keys: [keys, quarantineKeys] }]);

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());
beforeEach(() => ctx.flush());

async function setAside(queue: string, raw: string | Buffer): Promise<string> {
  const entry = quarantineEntry(ctx, queue, raw, "not JSON");
  await ctx.redis.commands.lpush(quarantineOf(queue), entry);
  return JSON.parse(entry).id;
}

test("entries are listed per queue, newest first, with everything an operator needs", async () => {
  const first = await setAside(keys.toSend(), "one");
  const second = await setAside(keys.toSend(), "two");
  await setAside(keys.due(), "three");
  expect(await quarantinedQueues(ctx)).toEqual([
    { queue: "bells:due", length: 1 },
    { queue: "bells:to:send", length: 2 },
  ]);
  expect(await listQuarantined(ctx, keys.toSend())).toEqual([
    { id: second, queue: "bells:to:send", raw: "two", reason: "not JSON", quarantined_at: ctx.clock.now() },
    { id: first, queue: "bells:to:send", raw: "one", reason: "not JSON", quarantined_at: ctx.clock.now() },
  ]);
  expect(await listQuarantined(ctx, keys.toSend(), { offset: 1, limit: 5 })).toMatchObject([{ id: first }]);
});

test("an entry goes back to the end of its queue, byte for byte or corrected, and only once", async () => {
  const bytes = Buffer.from([0xff, 0x00]);
  const binary = await setAside(keys.toSend(), bytes);
  const broken = await setAside(keys.toSend(), "brokn");
  await requeueQuarantined(ctx, catalogue, keys.toSend(), binary);
  await requeueQuarantined(ctx, catalogue, keys.toSend(), broken, { corrected: "broken" });
  expect(await ctx.redis.commands.lrangeBuffer(keys.toSend(), 0, -1)).toEqual([bytes, Buffer.from("broken")]);
  await expect(requeueQuarantined(ctx, catalogue, keys.toSend(), broken)).rejects.toSatisfy(
    quarantineErrors.quarantined_entry_absent.matches,
  );
  expect(await quarantinedQueues(ctx)).toEqual([]);
});

test("an entry of a schedule goes back due now, or when the operator says", async () => {
  const one = await setAside(keys.due(), "one");
  const two = await setAside(keys.due(), "two");
  await requeueQuarantined(ctx, catalogue, keys.due(), one);
  await requeueQuarantined(ctx, catalogue, keys.due(), two, { score: 5 });
  expect(await ctx.redis.commands.zrange(keys.due(), 0, "-1", "WITHSCORES")).toEqual([
    "two",
    "5",
    "one",
    String(ctx.clock.now()),
  ]);
});

test("an entry of something that is no queue stays", async () => {
  const id = await setAside(keys.name(), "one");
  await expect(requeueQuarantined(ctx, catalogue, keys.name(), id)).rejects.toSatisfy(
    quarantineErrors.not_requeueable.matches,
  );
  expect(await listQuarantined(ctx, keys.name())).toHaveLength(1);
});

test("a discarded entry is gone and cannot be discarded again, however deep it lay", async () => {
  const id = await setAside(keys.toSend(), "oldest");
  for (let n = 0; n < 150; n++) await setAside(keys.toSend(), `newer ${n}`);
  await discardQuarantined(ctx, keys.toSend(), id);
  expect(await quarantinedQueues(ctx)).toEqual([{ queue: "bells:to:send", length: 150 }]);
  await expect(discardQuarantined(ctx, keys.toSend(), id)).rejects.toSatisfy(
    quarantineErrors.quarantined_entry_absent.matches,
  );
});

test("something strange in the quarantine itself is shown and can be discarded", async () => {
  await ctx.redis.commands.lpush(quarantineOf(keys.toSend()), "strange");
  const id = await setAside(keys.toSend(), "one");
  const [, strange] = await listQuarantined(ctx, keys.toSend());
  expect(strange?.reason).toBe("not a quarantine entry");
  await discardQuarantined(ctx, keys.toSend(), strange!.id);
  expect(await listQuarantined(ctx, keys.toSend())).toMatchObject([{ id }]);
});
