import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";
import { passTimeUntil } from "../harness/time.ts";
import { CrashFleet, gate, numbered } from "./fleet.ts";

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext();
  fleet = new CrashFleet(house);
});
afterEach(() => fleet.stopAll());
afterAll(() => house.close());

test("an idle worker that waits for a push notices that the connection broke, and takes jobs again", async () => {
  const ran: number[] = [];
  const fine = numbered("fine", async (_ctx, { n }) => void ran.push(n));
  const { jobs } = await fleet.start({ runners: [fine] });
  await eventually(async () => /cmd=blmove/.test(String(await house.redis.commands.client("LIST"))));
  await house.redis.commands.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await eventually(() => jobs.enqueue(fine, { n: 1 }).then(() => true));
  await eventually(async () => {
    await house.clock.advance(0.5);
    return ran.includes(1);
  });
});

test("after Redis lost all its data workers register again, the schedule is rebuilt, and jobs run", async () => {
  let recurred = 0;
  const ran: number[] = [];
  const regular = numbered("regular", async () => void recurred++);
  const fine = numbered("fine", async (_ctx, { n }) => void ran.push(n));
  const plan = {
    runners: [regular, fine],
    recurring: [{ runner: regular, kwargs: { n: 1 }, schedule: { seconds: [0] } }],
  };
  const fleetOfTwo = [await fleet.start(plan), await fleet.start(plan)];
  await house.server.crashAndRestart();
  expect(await eventually(() => house.redis.commands.ping())).toBe("PONG");
  expect(await house.redis.commands.exists(jobKeys.recurringHash())).toBe(0);
  await passTimeUntil(house, () => recurred >= 2, { limit: 200 });
  expect(await house.redis.commands.zcard(jobKeys.workers())).toBe(2);
  await fleetOfTwo[0]!.jobs.enqueue(fine, { n: 1 });
  await passTimeUntil(house, () => ran.length === 1, { limit: 10 });
  await fleet.expectInvariants();
});

test("a worker can stop while Redis is away, after its running jobs have ended", async () => {
  const { open, opened } = gate();
  let ended = false;
  const slow = numbered("slow", async () => {
    await opened;
    ended = true;
  });
  const cutOff = await fleet.startMortal({ runners: [slow] });
  await cutOff.jobs.enqueue(slow, { n: 1 });
  await eventually(() => cutOff.worker.active === 1);
  cutOff.cut();
  const stopping = cutOff.worker.stop();
  open();
  await stopping;
  expect(ended).toBe(true);
  expect(cutOff.worker.mode).toBe("stopped");
});
