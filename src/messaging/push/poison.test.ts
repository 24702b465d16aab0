import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { explain } from "../../kernel/keyspace/explain.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import type { PushReceipt, PushTicket } from "../../providers/push.ts";
import { checkEntry, LARGEST_NEW_ENTRY, sendEntry } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { enqueuePushes, type NewPush } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, rooms, token } from "./push.fixture.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";
import { failureJob, readFailure, readSuccess } from "./story.ts";

/** What a queue may meet: entries too large, too strange or from nowhere. None of them may hold up the others. */
let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const setAside = async (key: string) =>
  (await house.redis.commands.lrange(raw(quarantineOf(key)), 0, -1)).map((entry) => JSON.parse(entry));

const noted = {
  failureJob: { name: "runners.test.failure", kwargs: {} },
  successJob: { name: "runners.test.success", kwargs: {} },
};

/** A notification whose entry has exactly so many bytes. */
async function sized(bytes: number): Promise<NewPush> {
  const withFiller = (length: number): NewPush =>
    newPush("large", {
      ...noted,
      failureJob: { name: "runners.test.failure", kwargs: { filler: "é".repeat(length) } },
    });
  await enqueuePushes(house.main.ctx, [withFiller(0)]);
  const [empty] = await house.redis.commands.lrangeBuffer(raw(keys.toSend()), 0, -1);
  await house.reset();
  const left = bytes - empty!.length;
  const push = withFiller(Math.floor(left / 2));
  return left % 2 === 0 ? push : { ...push, contents: { ...push.contents, title: `${push.contents.title}!` } };
}

/** An entry as it lies in a queue, with whatever is wrong about it. */
function entryWith(changes: Record<string, unknown>): string {
  const now = house.clock.now();
  return JSON.stringify({
    aud: "send",
    uid: "crl_pma_strange",
    initially_queued_at: now,
    retry: 0,
    last_queued_at: now,
    push_token: token("strange"),
    contents: { title: "My secret title", body: "My secret body", channel_id: null },
    failure_job: { name: "runners.test.failure", kwargs: {} },
    success_job: { name: "runners.test.success", kwargs: {} },
    ...changes,
  });
}

/** Has a provider answer every notification and every ticket with these words. */
function answering(words: { ticket?: object; receipt?: object }) {
  const process = house.another();
  const provider = "wordy";
  Object.assign(process.ctx.providers.push, {
    send: async (messages: readonly unknown[]) =>
      messages.map((_, at) => ({ ok: true, ticket: { status: "ok", id: `t${at}` }, provider, ...words.ticket })),
    receipts: async (ids: readonly string[]) => new Map(ids.map((id) => [id, words.receipt])),
  });
  return process;
}

const longWords = { message: "\u0001".repeat(30_000), details: { error: "x".repeat(90_000) } };
const passing = {
  ok: false,
  identifier: "ServerError",
  subidentifier: null,
  retryable: true,
  extra: "\u0007".repeat(2000),
};

test("the largest notification that is let in goes all the way, although every answer is as wordy as can be", async () => {
  const push = await sized(LARGEST_NEW_ENTRY);
  await enqueuePushes(house.main.ctx, [push]);
  const [entry] = await house.redis.commands.lrangeBuffer(raw(keys.toSend()), 0, -1);
  expect(entry).toHaveLength(LARGEST_NEW_ENTRY);
  const wordyTicket = { status: "error", id: "i".repeat(9000), ...longWords };
  await house.run("send", answering({ ticket: { ...passing, ticket: wordyTicket } }));
  const [failed] = await house.takeCallbacks();
  const story = readFailure(failed!.kwargs.data_raw);
  expect(story).toMatchObject({ attempt: { retry: 0 }, failure_info: { identifier: "ServerError" } });
  expect(story.failure_info.ticket!.message!.length).toBeGreaterThan(300);
  await house.runCallbacks([{ name: "runners.push.default_failure", kwargs: failed!.kwargs }]);
  await house.clock.advance(15);

  const id = "\u0002".repeat(512);
  const process = answering({
    ticket: { ticket: { status: "ok", id } },
    receipt: { ...passing, receipt: { status: "error", ...longWords } },
  });
  await house.run("send", process);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check", process);
  const [unchecked] = await house.takeCallbacks();
  expect(readFailure(unchecked!.kwargs.data_raw).failure_info).toMatchObject({ action: "check", retryable: true });
  await house.runCallbacks([{ name: "runners.push.default_failure", kwargs: unchecked!.kwargs }]);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check", answering({ receipt: { ok: true, receipt: { status: "ok", ...longWords } } }));
  const [succeeded] = await house.takeCallbacks();
  expect(readSuccess(succeeded!.kwargs.data_raw).result.ticket.id).toBe(id);
  expect(await setAside(keys.toSend())).toEqual([]);
  expect(await setAside(keys.hot())).toEqual([]);
  expect(await house.counts(pushReceiptStats)).toMatchObject({ succeeded: 1, retried: 1 });
});

test("one byte more than that is refused before it is queued, with how many it has", async () => {
  const push = await sized(LARGEST_NEW_ENTRY + 1);
  const refusal = enqueuePushes(house.main.ctx, [newPush("good"), push]);
  await expect(refusal).rejects.toSatisfy(errors.invalid_push.matches);
  await expect(refusal).rejects.toThrow(`${LARGEST_NEW_ENTRY + 1} bytes`);
  expect(await house.length(keys.toSend())).toBe(0);
});

test("a ticket whose id nobody could keep fails its notification alone, for good", async () => {
  const process = house.another();
  Object.assign(process.ctx.providers.push, {
    send: async () => [
      { ok: true, ticket: { status: "ok", id: "i".repeat(513), message: null, details: null }, provider: "odd" },
      { ok: true, ticket: { status: "ok", id: "fine", message: null, details: null }, provider: "odd" },
    ],
  });
  await house.queue(2, noted);
  await house.run("send", process);
  const [failed, ...others] = await house.takeCallbacks();
  expect(others).toEqual([]);
  expect(readFailure(failed!.kwargs.data_raw).failure_info).toMatchObject({
    identifier: "InternalError",
    retryable: false,
    extra: expect.stringContaining("513 characters"),
  });
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 2, succeeded: 1, failed_due_to_internal_error: 1 });
});

test("whatever else lies in the queue is set aside with its reason, which repeats nothing of it", async () => {
  const nested = `${"[".repeat(3000)}${"]".repeat(3000)}`;
  const strange: Record<string, string> = {
    "it is not JSON": "My secret title, cut of",
    "it is no object": "null",
    'aud is not "send"': entryWith({ aud: "check" }),
    "uid is no uid": entryWith({ uid: "a:b" }),
    "initially_queued_at is no time": entryWith({}).replace(
      /"initially_queued_at":[\d.]+/,
      '"initially_queued_at":1e300',
    ),
    "last_queued_at is no time": entryWith({ last_queued_at: -1 }),
    "retry is no count": entryWith({ retry: 0.5 }),
    "push_token is no push token": entryWith({ push_token: "ExponentPushToken[with space]" }),
    "contents.channel_id is neither": entryWith({ contents: { title: "My secret title", body: "" } }),
    "the message has": entryWith({ contents: { title: "", body: "My secret".repeat(500), channel_id: null } }),
    "failure_job.name names no job": entryWith({ failure_job: { name: "rm -rf", kwargs: {} } }),
    "success_job.kwargs has data_raw": entryWith({ success_job: { name: "runners.a", kwargs: { data_raw: "" } } }),
    "written out it has more": entryWith({ more: "?" }).replace('"?"', `[${"1e20,".repeat(8000)}0]`),
    "50000 bytes": entryWith({}).padEnd(50_000),
    "the bytes are not UTF-8": "",
  };
  await house.queue(1);
  for (const text of Object.values(strange).filter(Boolean)) await house.redis.commands.rpush(raw(keys.toSend()), text);
  await house.redis.commands.rpush(raw(keys.toSend()), Buffer.from([0x22, 0xff, 0x22]));
  await house.redis.commands.rpush(raw(keys.toSend()), entryWith({ nested: "?" }).replace('"?"', nested));
  await house.queue(1, { pushToken: token("last") });
  await house.run("send");
  const aside = await setAside(keys.toSend());
  for (const reason of Object.keys(strange))
    expect(
      aside.filter((entry) => entry.reason.includes(reason)),
      reason,
    ).toHaveLength(1);
  expect(aside).toHaveLength(Object.keys(strange).length);
  expect(aside.map(({ reason }) => reason).join()).not.toContain("secret");
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 2, succeeded: 3 });
  expect(await house.length(keys.sendPurgatory())).toBe(0);
});

test("a ticket that says it was queued in a far future does not rest until then", async () => {
  await house.queue(1, noted);
  await house.run("send");
  const [member, score] = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1", "WITHSCORES");
  await house.redis.commands.del(raw(keys.cold()));
  const ahead = { ...JSON.parse(member!), last_queued_at: 250_000_000_000 };
  await house.redis.commands.zadd(raw(keys.cold()), score!, JSON.stringify(ahead));
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  expect((await house.takeCallbacks()).map(({ name }) => name)).toEqual(["runners.test.success"]);
});

test("whatever can be read from a queue can be told of in a callback, however a provider answers", async () => {
  const now = house.clock.now();
  const mostly = <T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
    fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd });
  const Entry = fc.record({
    aud: fc.constantFrom("send" as const, "check" as const),
    uid: mostly(fc.constant("crl_pma_1"), fc.string()),
    initially_queued_at: mostly(fc.constant(now), fc.double()),
    retry: mostly(fc.nat(5), fc.double()),
    last_queued_at: mostly(fc.constant(now), fc.double()),
    attempt_initially_queued_at: mostly(fc.constant(now), fc.double()),
    push_ticket: fc.record({ status: fc.constant("ok"), id: fc.string({ maxLength: 520, unit: "binary" }) }),
    push_ticket_created_at: fc.constant(now),
    push_token: mostly(fc.constant(token("a")), fc.string()),
    contents: fc.record({
      title: fc.string(),
      body: fc.string({ unit: "binary", maxLength: 5000 }),
      channel_id: fc.constant(null),
    }),
    failure_job: fc.constant({ name: "runners.test.failure", kwargs: { filler: "x".repeat(30_000) } }),
    success_job: fc.record({ name: fc.constant("runners.test.success"), kwargs: fc.object({ maxDepth: 2 }) }),
  });
  const Words = fc.record({
    message: fc.option(fc.string({ unit: "binary", maxLength: 20_000 })),
    details: fc.option(fc.object({ maxDepth: 2 })),
    extra: fc.option(fc.string({ unit: "binary", maxLength: 2000 })),
  });
  let told = 0;
  fc.assert(
    fc.property(Entry, Words, (entry, { message, details, extra }) => {
      const text = Buffer.from(JSON.stringify(entry));
      for (const codec of [sendEntry, checkEntry]) {
        let attempt: ReturnType<typeof codec.decode>;
        try {
          attempt = codec.decode(text);
        } catch (error) {
          expect(error).toMatchObject({ code: "undecodable" });
          continue;
        }
        const ticket: PushTicket = { status: "error", id: message, message, details };
        const receipt: PushReceipt = { status: "error", message, details };
        const job = failureJob(house, attempt, {
          identifier: "InternalError",
          retryable: false,
          extra,
          ticket,
          receipt,
        });
        expect(readFailure(JSON.parse(job).kwargs.data_raw).attempt).toEqual(attempt);
        told += 1;
      }
    }),
    { numRuns: 150, seed: 3 },
  );
  expect(told).toBeGreaterThan(20);
});

test("tools never read out what waits: whose device it is for, and what it says", async () => {
  await house.queue(1);
  await house.run("send");
  await house.queue(1);
  const catalogue = new Catalogue(rooms);
  for (const key of [
    keys.toSend(),
    keys.sendPurgatory(),
    keys.retrying(),
    keys.cold(),
    keys.hot(),
    keys.ticketPurgatory(),
  ]) {
    expect(catalogue.match(key)?.entry.secret, key).toBe(true);
    expect(JSON.stringify(await explain(catalogue, key, house))).not.toMatch(/Good morning|ExponentPushToken/);
  }
});
