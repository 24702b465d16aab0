import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type EmailHouse, openEmail, sample } from "./email.fixture.ts";
import { email } from "./index.ts";
import { send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { attemptsFor } from "./service.ts";
import { settings } from "./settings.ts";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const broken = async (name: string) => {
  const invariant = email.invariants.find((one) => one.name === `email:${name}`)!;
  return invariant.check(house.ctx);
};
const entry = (changes: object = {}) =>
  JSON.stringify({ ...attemptsFor(house.ctx, [sample("ada@example.com")])[0], ...changes });

test("the audit finds a mail that awaits its receipt without a hash, with another's hash, or at another time", async () => {
  const { commands } = house.ctx.redis;
  for (const person of ["a", "b", "c", "d"]) await house.mail(sample(`${person}@example.com`));
  await house.run(send);
  expect(await broken("pending_is_whole")).toEqual([]);
  const [first, second, third] = await commands.zrange(keys.pending(), 0, "-1");
  await commands.del(`email:receipt_pending:${first}`);
  await commands.hset(`email:receipt_pending:${second}`, "message_id", "other");
  await commands.zadd(keys.pending(), 5, third!);
  await commands.hset("email:receipt_pending:alone", "uid", "crl_em_alone");
  expect((await broken("pending_is_whole")).toSorted()).toEqual(
    [
      `email:receipt_pending ${first} has no hash`,
      `email:receipt_pending ${second} has a hash that names another id`,
      `email:receipt_pending ${third} disagrees with its hash on when it was taken`,
      "email:receipt_pending:alone is not in email:receipt_pending",
    ].toSorted(),
  );
});

test("the audit finds a mail that is in two places, and tells at most a hundred of them", async () => {
  const { commands } = house.ctx.redis;
  const entries = Array.from({ length: 1_200 }, (_, at) => entry({ uid: `crl_em_${at}` }));
  await commands.rpush(keys.toSend(), ...entries);
  expect(await broken("mail_in_one_place")).toEqual([]);
  await commands.zadd(keys.retrying(), 1, entries[1_100]!);
  expect(await broken("mail_in_one_place")).toEqual(["the mail crl_em_1100 is in email:retrying and email:to_send"]);
  await commands.rpush(keys.urgent(), ...entries);
  expect(await broken("mail_in_one_place")).toHaveLength(100);
});

test("the audit finds a purgatory that is too full or that nobody attends to", async () => {
  const { commands } = house.ctx.redis;
  await house.run(send);
  await commands.rpush(keys.sendPurgatory(), ...Array.from({ length: 51 }, (_, at) => entry({ uid: `crl_em_${at}` })));
  expect(await broken("purgatories_are_batches")).toEqual(["email:send_purgatory holds 51 items; at most 50"]);
  const invariant = email.invariants.find(({ name }) => name === "email:purgatories_are_batches")!;
  expect(await invariant.check(house.process({ config: [[settings.claimSize, 100]] }))).toEqual([]);
  // The next run may be about to begin.
  expect(await broken("purgatories_are_attended")).toEqual([]);
  await house.base.clock.advance(121);
  expect(await broken("purgatories_are_attended")).toEqual([
    "email:send_purgatory is not empty and no run attends to it",
  ]);
  await house.run(send);
  expect(await broken("purgatories_are_attended")).toEqual([]);
});

test("the audit finds a receipt that was not given up in time, by the setting", async () => {
  await house.mail(sample("ada@example.com"));
  await house.run(send);
  await house.base.clock.advance(4_000);
  await house.run(staleReceiptDetection);
  expect(await broken("receipts_are_given_up")).toEqual([]);
  const invariant = email.invariants.find(({ name }) => name === "email:receipts_are_given_up")!;
  const impatient = house.process({ config: [[settings.receiptTimeout, 3_600]] });
  expect(await invariant.check(impatient)).toEqual(["email:receipt_pending holds 1 mails that are older than 3600 s"]);
});

test("the audit finds counts and breakdowns that do not add up", async () => {
  await house.mail(sample("ada@example.com"));
  await house.run(send);
  expect(await broken("counts_add_up")).toEqual([]);
  const { commands } = house.ctx.redis;
  const [day] = (await commands.keys("stats:email_send:daily:*")).filter((name) => /:\d+$/.test(name));
  await commands.hincrby(day!, "attempted", 1);
  await commands.hincrby(`${day}:extra:accepted`, "sample", 1);
  const found = (await broken("counts_add_up")).join("; ");
  expect(found).toContain("attempted is 2, and accepted + failed_permanently + failed_transiently is 1");
  expect(found).toContain("the breakdown of accepted sums to 2");
});
