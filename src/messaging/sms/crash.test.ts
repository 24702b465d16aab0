import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand, mortalConnection } from "../../../test/harness/chaos.ts";
import { signTwilioRequest } from "../../providers/twilio-signature.ts";
import { SANDBOX_TWILIO } from "../../sandbox/sandbox.ts";
import type { FailureStory, SuccessStory } from "./callbacks.ts";
import { handleFailures } from "./defaults.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats, smsWebhookStats } from "./stats.ts";
import { takeStatusWebhook } from "./status-webhook.ts";

const NUMBERS = ["+14155550101", "+14155550102", "+14155550103"];
/** Longer than the lease of a dead process's locks. */
const LEASE_OVER = 121;

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

async function silence(): Promise<void> {
  await house.clear();
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
}

/** Three texts that the provider took; answers their sids. */
async function takenTexts(): Promise<string[]> {
  await silence();
  for (const number of NUMBERS) await house.text(number);
  await house.run(send);
  return house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
}

async function silentTexts(): Promise<void> {
  await takenTexts();
  await house.base.clock.advance(901);
}

const emptied = async () =>
  expect([
    await house.length(keys.sendPurgatory()),
    await house.length(keys.recoveryPurgatory()),
    await house.length(keys.eventPurgatory()),
  ]).toEqual([0, 0, 0]);

const isFinal = (story: FailureStory | SuccessStory) => !("failure_info" in story && story.failure_info.retryable);

/** No callback was told of the same try, the same silence or the same end a second time. */
function toldOnce(): void {
  const told = house.stories.map((story) => {
    if (isFinal(story)) return `${story.sms.uid} ended`;
    const { sms } = story as FailureStory;
    return `${sms.uid} ${sms.aud} ${sms.aud === "send" ? sms.retry : sms.num_failures}`;
  });
  expect(told.toSorted()).toEqual([...new Set(told)].sort());
}

test("a sender that dies at any command loses no text, counts none twice, and nobody is texted twice", async () => {
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await silence();
      for (const number of NUMBERS) await house.text(number);
    },
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(send);
      expect(
        house
          .outbox()
          .map(({ to }) => to)
          .sort(),
      ).toEqual(NUMBERS);
      expect((await house.counts(smsSendStats)).events).toEqual({ queued: 3, succeeded_pending: 3 });
      expect(await house.length(keys.pending())).toBe(3);
      await emptied();
      await house.audit();
    },
  });
  expect(deaths).toBeGreaterThan(16);
}, 60_000);

test("a sender that dies at any command tells each failure and each immediate success to its callback once", async () => {
  const texts = [
    ["+15005550001", "ApplicationErrorOther 21211"],
    ["+15005550009", "ApplicationErrorOther 21614"],
    ["+15555555555", "ClientErrorOther 418"],
    [NUMBERS[0]!, "delivered"],
    [NUMBERS[1]!, "delivered"],
  ] as const;
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await house.clear();
      // A text that is on its way before the answer is written.
      house.sandbox.knobs.patch({ twilio: { stepSeconds: 0, callbacks: "off" } });
      for (const [number] of texts) await house.text(number);
    },
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(send);
      await house.callbacks();
      const told = house.stories.map((story): [string, string] => {
        if (!("failure_info" in story)) return [story.sms.phone_number, story.result.message_resource.status];
        const { identifier, subidentifier } = story.failure_info;
        return [story.sms.phone_number, `${identifier} ${subidentifier}`];
      });
      expect(told.toSorted()).toEqual(texts.toSorted());
      await emptied();
      await house.audit();
    },
  });
  expect(deaths).toBeGreaterThan(16);
}, 60_000);

test("giving back what a dead run left may itself die at any command: no text loses its doubt, and nobody is texted twice", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await silence();
      for (const number of NUMBERS) await house.text(number);
      const dying = await mortalConnection(house.base.server);
      const taken = house.process({ redis: dying });
      const { create } = taken.providers.sms;
      // The provider takes the texts, and the process is gone before it can write that down.
      taken.providers.sms.create = async (message) => {
        const outcome = await create.call(taken.providers.sms, message);
        dying.dead = true;
        return outcome;
      };
      await house.run(send, taken).catch(() => {});
      dying.commands.disconnect();
      await house.base.clock.advance(LEASE_OVER);
      house.sandbox.knobs.patch({ twilio: { failNext: { status: 401, count: 99, code: 20003 } } });
    },
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(send);
      await house.audit();
      house.sandbox.knobs.patch({ twilio: { failNext: null } });
      await house.run(send);
      expect(house.outbox().map(({ to }) => to)).toEqual(expect.arrayContaining(NUMBERS));
      expect(house.outbox()).toHaveLength(3);
      expect((await house.counts(smsSendStats)).events).toEqual({ queued: 3, succeeded_pending: 3 });
      await emptied();
      await house.audit();
    },
  });
}, 60_000);

test("a search for silent texts that dies at any command tells each failure job once", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: silentTexts,
    life: (redis) => house.run(receiptStaleDetection, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(receiptStaleDetection);
      expect(await house.callbacks()).toEqual(NUMBERS.map(() => "runners.sms.default_failure"));
      expect((await house.counts(smsPollingStats)).events).toEqual({ detected_stale: 3, queued_for_recovery: 3 });
      await house.audit();
    },
  });
}, 60_000);

test("asking about silent texts may die at any command: every answer becomes one event", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await silentTexts();
      await house.run(receiptStaleDetection);
      await house.callbacks();
    },
    life: (redis) => house.run(receiptRecovery, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(receiptRecovery);
      expect([await house.length(keys.event()), await house.length(keys.recovery())]).toEqual([3, 0]);
      expect((await house.counts(smsPollingStats)).events).toMatchObject({ attempted: 3, received: 3 });
      await emptied();
      await house.audit();
    },
  });
}, 60_000);

test("news may be worked in by a process that dies at any command: each text ends once, with one callback", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      for (const sid of await takenTexts())
        for (const status of ["sending", "sent"])
          await house.ctx.redis.commands.rpush(
            keys.event(),
            JSON.stringify({
              sid,
              status,
              error_code: null,
              error_message: null,
              date_updated: null,
              information_received_at: house.base.clock.now(),
              received_via: "webhook",
            }),
          );
    },
    life: (redis) => house.run(receiptReconciliation, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(LEASE_OVER);
      await house.run(receiptReconciliation);
      expect(await house.callbacks()).toEqual(NUMBERS.map(() => "runners.sms.default_success"));
      expect(await house.length(keys.pending())).toBe(0);
      const { events } = await house.counts(smsEventStats);
      expect(events).toMatchObject({ attempted: 6, updated: 3, removed: 3, found: 6 });
      await emptied();
      await house.audit();
    },
  });
}, 60_000);

test("failure callbacks that die at any command and are delivered again decide once", async () => {
  let raws: string[] = [];
  const failures = async () => {
    const entries = await house.ctx.redis.commands.lrange("jobs:hot", 0, -1);
    return entries
      .map((entry) => JSON.parse(entry) as { name: string; kwargs: { data_raw: string } })
      .filter(({ name }) => name === "runners.sms.default_failure")
      .map(({ kwargs }) => kwargs.data_raw);
  };
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await silentTexts();
      await house.run(receiptStaleDetection);
      house.sandbox.knobs.patch({ twilio: { failNext: { status: 429, count: 1, code: 20429 } } });
      await house.text("+14155550104");
      await house.text("+15005550004");
      await house.run(send);
      raws = await failures();
    },
    life: async (redis) => {
      await handleFailures(house.process({ redis }), raws);
    },
    afterlife: async () => {
      await handleFailures(house.ctx, raws);
      expect(raws).toHaveLength(5);
      expect([await house.length(keys.retrying()), await house.length(keys.recovery())]).toEqual([1, 3]);
      expect((await house.counts(smsSendStats)).events.retried).toBe(1);
      expect((await house.counts(smsPollingStats)).events.queued_for_recovery).toBe(3);
      expect(await house.query("select phone_number from suppressed_phone_numbers")).toEqual([
        { phone_number: "+15005550004" },
      ]);
      await house.audit();
    },
  });
}, 60_000);

test("a webhook whose process dies is not answered, and its repeat brings the news with counts that add up", async () => {
  const fields = { MessageSid: `SM${"ab".repeat(16)}`, MessageStatus: "sending" };
  const path = "/api/1/sms/webhook";
  const signature = signTwilioRequest(SANDBOX_TWILIO.authToken, {
    publicUrl: house.url,
    path,
    fields: Object.entries(fields),
  });
  const received = {
    path,
    body: Buffer.from(new URLSearchParams(fields).toString()),
    headers: { "x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded" },
  };
  await dieAtEveryCommand(house.base.server, {
    prepare: () => house.clear(),
    life: async (redis) => {
      await takeStatusWebhook(house.process({ redis }), received);
    },
    afterlife: async () => {
      expect(await takeStatusWebhook(house.ctx, received)).toBe(200);
      const { events } = await house.counts(smsWebhookStats);
      expect(await house.length(keys.event())).toBe(events.accepted);
      expect(events.accepted).toBeGreaterThanOrEqual(1);
      await house.audit();
    },
  });
});

test("whatever fails and dies in whatever order, the room's invariants hold and every text comes to an end", async () => {
  const jobs = [send, receiptStaleDetection, receiptRecovery, receiptReconciliation];
  const step = fc.record({ job: fc.nat(3), dieAt: fc.integer({ min: 1, max: 14 }), wait: fc.constantFrom(1, 16, 900) });
  const steps = fc.sample(step, { numRuns: 24, seed: 11 });
  house.sandbox.knobs.patch({ twilio: { errorRate: 0.2, callbacks: "duplicate" } });
  for (const [at, { job, dieAt, wait }] of steps.entries()) {
    if (at % 3 === 0) await house.text(NUMBERS[at % NUMBERS.length]!, `text ${at}`);
    const mortal = await mortalConnection(house.base.server, { dieAt, death: at % 2 === 0 ? "before" : "after" });
    await house.run(jobs[job]!, house.process({ redis: mortal })).catch(() => {});
    mortal.commands.disconnect();
    await house.callbacks();
    await house.audit();
    await house.base.clock.advance(wait);
    // Nobody leaves a quarter of an hour without a run.
    if (wait === 900) for (const each of jobs) await house.run(each);
  }
  house.sandbox.knobs.reset();
  for (let round = 0; round < 8; round++) {
    await house.base.clock.advance(round < 2 ? LEASE_OVER : 901);
    for (const job of jobs) await house.run(job);
    await house.callbacks();
    await house.audit();
  }
  const left = [keys.toSend(), keys.retrying(), keys.pending(), keys.recovery(), keys.event(), keys.early()];
  expect(await Promise.all(left.map((key) => house.length(key)))).toEqual([0, 0, 0, 0, 0, 0]);
  const sent = house.outbox().map(({ text }) => text);
  expect(new Set(sent).size).toBe(sent.length);
  toldOnce();
  const { events } = await house.counts(smsSendStats);
  const givenUp = (events.abandoned ?? 0) + ((await house.counts(smsPollingStats)).events.abandoned ?? 0);
  expect(house.stories.filter(isFinal).length + givenUp).toBe(events.queued);
}, 60_000);
