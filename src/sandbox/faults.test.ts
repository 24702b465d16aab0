import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { silentLog } from "../kernel/log.ts";
import { testMail } from "../providers/email.conformance.ts";
import { ExpoPush } from "../providers/expo.ts";
import { SesEmail } from "../providers/ses.ts";
import { TwilioSms } from "../providers/twilio.ts";
import { strike } from "./faults.ts";
import { confirmSubscriptions, openStage, type Stage } from "./stage.fixture.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage();
});
afterEach(() => stage.close());

const clientsOf = ({ sandbox, clock }: Stage) => {
  const common = { baseUrl: sandbox.url, timeout: 20, userAgent: "carillon/test", clock, log: silentLog };
  return {
    expo: new ExpoPush(common),
    twilio: new TwilioSms({ ...common, ...sandbox.twilio.account, messagingServiceSid: "MG1" }),
    ses: new SesEmail({
      ...common,
      region: "us-east-1",
      endpoint: sandbox.url,
      credentials: { accessKeyId: "AKID", secretAccessKey: "secret" },
    }),
  };
};
const push = (at: number) => ({ to: `ExponentPushToken[t${at}]`, title: "Hi", body: "there" });
const number = (at: number) => `+1202555${String(at).padStart(4, "0")}`;
const named = (outcome: { ok: boolean; identifier?: string }) => outcome.identifier ?? "ok";
/** One after another, so that the sequence of faults is the seed's alone. */
const inTurn = async <T>(count: number, act: (at: number) => Promise<T>) => {
  const seen: T[] = [];
  for (let at = 0; at < count; at++) seen.push(await act(at));
  return seen;
};

describe("shares of several faults at once", () => {
  it("strike at most one at a time, each as often as its share says", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 0.99, noNaN: true }), (drawn) => {
        const struck = strike({ a: 0.2, b: 0.3 }, ["a", "b"], () => drawn);
        expect(struck).toBe(drawn < 0.2 ? "a" : drawn < 0.5 ? "b" : undefined);
      }),
    );
    const drawn: number[] = [];
    expect(strike({ a: 0 }, ["a"], () => drawn.push(1))).toBeUndefined();
    expect(drawn).toEqual([]);
  });

  it("may not add up to more than everything", () => {
    const { knobs } = stage.sandbox;
    expect(() => knobs.patch({ expo: { faultRates: { "429": 0.6, reset: 0.6 } } })).toThrow("more than 1");
    expect(() => knobs.patch({ twilio: { faultRates: { sunshine: 0.1 } as never } })).toThrow();
    knobs.patch({ expo: { faultRates: { "429": 0.4, reset: 0.6 } } });
  });

  it("are met by requests to every provider, the same for the same seed", async () => {
    const run = async (seed: number) => {
      const other = await openStage({ seed });
      const { expo, twilio, ses } = clientsOf(other);
      other.sandbox.knobs.patch({
        expo: { faultRates: { "429": 0.2, "503": 0.2, reset: 0.1, cut_after_accept: 0.1, malformed_json: 0.2 } },
        twilio: { faultRates: { "400": 0.2, "429": 0.2, cut_after_create: 0.2, malformed_structure: 0.2 } },
        ses: { fault_rates: { throttle: 0.2, "500": 0.2, reset: 0.2, MessageRejected: 0.2 } },
      });
      const seen = [
        await inTurn(25, async (at) => named((await expo.send([push(at)]))[0]!)),
        await inTurn(25, async (at) => named(await twilio.create({ to: number(at), body: "Hi" }))),
        await inTurn(25, async () => named(await ses.send(testMail("ada@example.com")))),
      ];
      const taken = other.sandbox.inbox.all().map(({ provider }) => provider);
      await ses.close();
      await other.close();
      return { seen, taken };
    };
    const { seen, taken } = await run(7);
    expect(seen.map((fates) => [...new Set(fates)].sort())).toEqual([
      ["ClientError429", "InternalError", "NetworkError", "ServerError", "ok"],
      ["ApplicationErrorOther", "ApplicationErrorRatelimit", "InternalError", "NetworkError", "ok"],
      ["SESClientError", "SESNetworkError", "SESServerError", "SESTooManyRequestsException", "ok"],
    ]);
    // What was cut or garbled after it was taken stands in the inbox, what was refused does not.
    const mayBeTaken = (fate: string) => ["ok", "NetworkError", "InternalError"].includes(fate);
    expect(taken.filter((provider) => provider === "twilio")).toHaveLength(seen[1]!.filter(mayBeTaken).length);
    expect(await run(7)).toEqual({ seen, taken });
    expect((await run(8)).seen).not.toEqual(seen);
  });

  it("are met by messages that were taken", async () => {
    const { expo, twilio, ses } = clientsOf(stage);
    const { knobs, inbox } = stage.sandbox;
    knobs.patch({
      expo: { messageFaultRates: { ticket_error: 0.3, receipt_error: 0.3, receipt_never: 0.2 } },
      twilio: { messageFaultRates: { failed: 0.25, undelivered: 0.25, canceled: 0.2, stuck: 0.2 } },
      ses: { mail_fault_rates: { bounce: 0.25, ooto: 0.25, complaint: 0.2, silent: 0.2 } },
    });
    const tickets = await expo.send(Array.from({ length: 40 }, (_, at) => push(at)));
    await inTurn(40, (at) => twilio.create({ to: number(at), body: "Hi" }));
    await inTurn(40, () => ses.send(testMail("ada@example.com")));
    await stage.clock.advance(60);
    const ends = (channel: string) => [
      ...new Set(inbox.list({ channel: channel as "sms" }).map((message) => inbox.statusOf(message).status)),
    ];
    expect(new Set(tickets.map(named))).toEqual(new Set(["ok", "DeviceNotRegistered"]));
    expect(ends("push").sort()).toEqual(["accepted", "delivered", "failed"]);
    expect(ends("sms").sort()).toEqual(["canceled", "delivered", "failed", "sending", "undelivered"]);
    expect(ends("email").sort()).toEqual(["accepted", "bounced", "complained", "delivered"]);
    await ses.close();
  });

  it("are met by callbacks and reports", async () => {
    const { twilio, ses } = clientsOf(stage);
    const { knobs } = stage.sandbox;
    confirmSubscriptions(stage.house);
    await stage.sandbox.ses.topic.subscribe();
    stage.house.caught.length = 0;
    knobs.patch({
      twilio: { callbackFaultRates: { off: 0.3, duplicate: 0.3 }, stuckAt: "queued" },
      ses: { notice_fault_rates: { dropped: 0.3, duplicated: 0.3 } },
    });
    await inTurn(20, (at) =>
      twilio.create({ to: number(at), body: "Hi", statusCallback: `${stage.house.url}/status` }),
    );
    await stage.clock.advance(1);
    await inTurn(20, () => ses.send(testMail("ada@example.com")));
    const timesOf = (path: string, idOf: (body: string) => string) => {
      const counts = new Map<string, number>();
      for (const caught of stage.house.caught.filter((each) => each.path === path))
        counts.set(idOf(caught.body), (counts.get(idOf(caught.body)) ?? 0) + 1);
      return counts;
    };
    const texts = () => timesOf("/status", (body) => new URLSearchParams(body).get("MessageSid")!);
    const mails = () => timesOf("/api/1/emails/sns-mail", (body) => JSON.parse(body).MessageId);
    // Some came twice, some once, some not at all.
    const mixed = (counts: Map<string, number>) =>
      counts.size < 20 && counts.size > 5 && [...counts.values()].includes(1) && [...counts.values()].includes(2);
    await eventually(() => mixed(texts()) && mixed(mails()));
    await ses.close();
  });
});

describe("outages", () => {
  it("last in each of several windows", async () => {
    const { expo } = clientsOf(stage);
    const now = stage.clock.now();
    stage.sandbox.knobs.patch({
      expo: {
        outage: [
          { from: now + 10, until: now + 20 },
          { from: now + 30, until: now + 40 },
        ],
      },
    });
    const fates = await inTurn(5, async (at) => {
      const [fate] = await expo.send([push(at)]);
      await stage.clock.advance(10);
      return named(fate!);
    });
    expect(fates).toEqual(["ok", "ServerError", "ok", "ServerError", "ok"]);
  });
});

describe("projects of Expo", () => {
  it("do not mix in one request, which the client sends apart", async () => {
    const { expo } = clientsOf(stage);
    stage.sandbox.knobs.patch({ expo: { projects: { [push(1).to]: "@somebody/else" } } });
    const outcomes = await expo.send([push(0), push(1), push(2)]);
    expect(outcomes.map(named)).toEqual(["ok", "ok", "ok"]);
    expect(new Set(stage.sandbox.inbox.all().map(({ to }) => to)).size).toBe(3);
  });
});

describe("one provider's knobs", () => {
  it("are replaced as a whole, and the others stay", () => {
    const { knobs } = stage.sandbox;
    knobs.patch({ ses: { latency_ms: 5, fail_next: 1 }, expo: { latencyMs: 7 } });
    const { ses, expo } = knobs.replace({ ses: { error: "throttle" } });
    expect([ses.latency_ms, ses.fail_next, ses.error, expo.latencyMs]).toEqual([0, 0, "throttle", 7]);
  });
});
