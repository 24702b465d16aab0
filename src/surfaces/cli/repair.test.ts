import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { domains } from "../../domains.ts";
import { jobKeys } from "../../jobs/index.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { Locks, lockKeys } from "../../mechanisms/lock/index.ts";
import { quarantineEntry, quarantineOf } from "../../mechanisms/quarantine/index.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";
import { locksCommand, quarantineCommand } from "./repair.ts";

let house: TestContext;
let said: string[];
const io = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) } as Io;
const open = ((work: (ctx: never) => Promise<unknown>) =>
  work(Object.assign(Object.create(house), { catalogue: new Catalogue(domains) }) as never)) as unknown as Open;
const call = (command: "locks" | "quarantine", ...args: string[]) => {
  said = [];
  const program = command === "locks" ? locksCommand(open, io) : quarantineCommand(open, io);
  return program.exitOverride().parseAsync(args, { from: "user" });
};

beforeAll(async () => {
  house = await openTestContext();
});
beforeEach(() => house.flush());
afterAll(() => house.close());

test("locks are listed with their holder and can be freed from the command line", async () => {
  const key = lockKeys.runnerLock({ runner: "runners.sweep" });
  await call("locks", "list");
  expect(said).toEqual(["No lock is held."]);
  await new Locks(house).withLock(key, { kind: "owner", wait: "fail" }, async () => {
    await call("locks", "list");
    expect(said.join("\n")).toContain(key);
    expect(said.join("\n")).toContain(house.hostname);
    await call("locks", "release", key);
    expect(said).toEqual([`${key} is free.`]);
  });
  await expect(call("locks", "release", jobKeys.hot())).rejects.toMatchObject({ code: "not_a_lock" });
});

test("quarantined entries are listed, corrected, sent back and discarded from the command line", async () => {
  const queue = jobKeys.hot();
  await call("quarantine", "list");
  expect(said).toEqual(["Nothing is quarantined."]);
  const entries = ["{broken", "{hopeless"].map((raw) => quarantineEntry(house, queue, raw, "not JSON"));
  await house.redis.commands.rpush(quarantineOf(queue), ...entries);
  await call("quarantine", "list");
  expect(said.join("\n")).toMatch(/jobs:hot\s+2/);
  await call("quarantine", "list", queue);
  expect(said.join("\n")).toContain("{broken");
  const [first, second] = entries.map((entry) => (JSON.parse(entry) as { id: string }).id);
  const corrected = '{"name":"runners.example","kwargs":{},"queued_at":1}';
  await call("quarantine", "requeue", queue, first!, "--corrected", corrected);
  await call("quarantine", "discard", queue, second!);
  expect(await house.redis.commands.lrange(queue, 0, -1)).toEqual([corrected]);
  await call("quarantine", "list");
  expect(said).toEqual(["Nothing is quarantined."]);
});
