import { afterAll, beforeAll, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement } from "../../../test/harness/chaos-sql.ts";
import { answersText } from "../../providers/http-server.fixture.ts";
import { sweep } from "./jobs.ts";
import { emitEvents, type WebhookEvent } from "./service.ts";
import { openWebhooks, type WebhooksHouse } from "./webhooks.fixture.ts";

let house: WebhooksHouse;
let endpoints: readonly string[];
beforeAll(async () => {
  house = await openWebhooks();
});
afterAll(() => house.close());

const events = ["one", "two", "three"].map(
  (key): WebhookEvent => ({ type: "touch.failed", key, at: 1_790_000_000, data: { touch_uid: key } }),
);
/** Longer than the lease of a dead worker and the patience of the sweep. */
const LONG = 200;

async function prepare(): Promise<void> {
  await house.clear();
  const made = [await house.endpoint(), await house.endpoint({ url: `${house.receiver.url}/other` })];
  endpoints = made.map(({ uid }) => uid);
}

/** Every event is told to every endpoint, under one id however often it was sent. */
async function expectAllTold(): Promise<void> {
  await house.pass(LONG);
  await house.run(sweep);
  await house.work();
  // The receiver may have kept its one failure for the second attempt, whose retry takes longer.
  await house.pass(2 * LONG);
  for (const uid of endpoints) {
    const messages = await house.messages(uid);
    expect(messages.map(({ status }) => status)).toEqual(["delivered", "delivered", "delivered"]);
    for (const { uid: id } of messages)
      expect(house.receiver.requests.some(({ headers }) => headers["webhook-id"] === id)).toBe(true);
  }
  const ids = new Set(house.receiver.requests.map(({ headers }) => headers["webhook-id"]));
  expect(ids.size).toBe(6);
}

test("whoever dies at any statement of telling tells of each event once when run again", async () => {
  const deaths = await dieAtEveryStatement(house.base.sql, {
    prepare,
    // The job that keeps events for later is a second way; here SQL has to be enough.
    life: (mortal) => emitEvents(house.process({ sql: mortal }), events),
    async afterlife() {
      await emitEvents(house.ctx, events);
      await expectAllTold();
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(4);
}, 60_000);

test("whoever dies at any command of telling has told of what SQL knows", async () => {
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare,
    life: (redis) => emitEvents(house.process({ redis }), events),
    afterlife: expectAllTold,
  });
  expect(deaths).toBeGreaterThanOrEqual(2);
}, 60_000);

const told = async () => {
  await prepare();
  await emitEvents(house.ctx, events);
  // One of them fails at first, so that a retry is part of the life.
  house.receiver.once.push(answersText(500, ""));
};

test("a worker that dies at any statement of a delivery leaves every message to be sent again or settled", async () => {
  const deaths = await dieAtEveryStatement(house.base.sql, {
    prepare: told,
    life: async (mortal) => void (await house.work(house.process({ sql: mortal }))),
    afterlife: expectAllTold,
  });
  expect(deaths).toBeGreaterThanOrEqual(6);
}, 60_000);

test("a worker that dies at any command of a delivery loses no retry", async () => {
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: told,
    life: async (redis) => void (await house.work(house.process({ redis }))),
    afterlife: expectAllTold,
  });
  expect(deaths).toBeGreaterThanOrEqual(2);
}, 60_000);
