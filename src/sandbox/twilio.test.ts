import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { SANDBOX_TWILIO } from "./sandbox.ts";
import { type Caught, openStage, type Stage } from "./stage.fixture.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage();
});
afterEach(() => stage.close());

const { accountSid, authToken } = SANDBOX_TWILIO;
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
const PERSON = "+15551234567";
const service = `MG${"0".repeat(32)}`;

interface Text {
  readonly sid: string;
  readonly status: string;
  readonly code?: number;
  readonly error_code: number | null;
  readonly date_updated: string;
}
const call = async (path: string, init: RequestInit = {}, authorization = basic(accountSid, authToken)) => {
  const response = await fetch(`${stage.sandbox.url}/2010-04-01/Accounts/${accountSid}/${path}`, {
    ...init,
    headers: { authorization },
  });
  return { status: response.status, body: (await response.json()) as Text & { messages: Text[] } & Paging };
};
interface Paging {
  readonly next_page_uri: string | null;
}
const create = (to = PERSON, fields: Record<string, string> = {}) =>
  call("Messages.json", {
    method: "POST",
    body: new URLSearchParams({ To: to, Body: "Time to breathe", MessagingServiceSid: service, ...fields }),
  });
const fetchText = (sid: string) => call(`Messages/${sid}.json`);
const callback = () => ({ StatusCallback: `${stage.house.url}/api/1/sms/webhook?from=sandbox` });
const calls = () => stage.house.caught.filter(({ path }) => path.startsWith("/api/1/sms/"));
const fieldsOf = ({ body }: Caught) => Object.fromEntries(new URLSearchParams(body));
const told = () => calls().map((each) => fieldsOf(each).MessageStatus);

/** As a receiver of webhooks computes it, from the documentation and not from the sandbox's code. */
function hasRightSignature(caught: Caught): boolean {
  const fields = fieldsOf(caught);
  const text = Object.keys(fields)
    .sort()
    .reduce((joined, name) => joined + name + fields[name], `${stage.house.url}${caught.path}`);
  return createHmac("sha1", authToken).update(text).digest("base64") === caught.headers["x-twilio-signature"];
}

describe("Twilio's messages", () => {
  it("are created, walk through their statuses on the clock, and are found by their sid", async () => {
    const { status, body } = await create();
    expect([status, body.status, body.error_code]).toEqual([201, "accepted", null]);
    expect(body.sid).toMatch(/^SM[0-9a-f]{32}$/);
    expect(body.date_updated).toMatch(/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000$/);
    const seen: string[] = [];
    for (let step = 0; step < 5; step++) {
      seen.push((await fetchText(body.sid)).body.status);
      await stage.clock.advance(1);
    }
    expect(seen).toEqual(["accepted", "queued", "sending", "sent", "delivered"]);
    expect((await fetchText(`SM${"0".repeat(32)}`)).body.code).toBe(20404);
    expect((await fetchText("nonsense")).status).toBe(404);
  });

  it("need the right credentials", async () => {
    const refused = await call("Messages.json", {}, basic(accountSid, "wrong"));
    expect([refused.status, refused.body.code]).toEqual([401, 20003]);
  });

  it("are refused with the codes of magic numbers and of missing fields", async () => {
    const codes: (number | undefined)[] = [];
    for (const last of [1, 2, 3, 4, 9]) codes.push((await create(`+1500555000${last}`)).body.code);
    expect(codes).toEqual([21211, 21612, 21408, 21610, 21614]);
    expect((await create("12")).body.code).toBe(21211);
    expect((await create("")).body.code).toBe(21604);
    expect((await create(PERSON, { Body: "" })).body.code).toBe(21602);
    expect((await create(PERSON, { MessagingServiceSid: "" })).body.code).toBe(21603);
    expect((await create(PERSON, { Body: "x".repeat(1601) })).body.code).toBe(21617);
    expect(stage.sandbox.inbox.size).toBe(0);
  });

  it("are listed by receiver and date, page by page", async () => {
    const first = await create();
    await create("+15557654321");
    await stage.clock.advance(3 * 86_400);
    const second = await create();
    const day = new Date(stage.clock.now() * 1000).toISOString().slice(0, 10);
    const sids = async (query: Record<string, string>) =>
      (await call(`Messages.json?${new URLSearchParams(query)}`)).body.messages.map(({ sid }) => sid);
    expect(await sids({ To: PERSON })).toEqual([second.body.sid, first.body.sid]);
    expect(await sids({ To: PERSON, "DateSent>": day })).toEqual([second.body.sid]);
    expect(await sids({ To: PERSON, DateSent: day })).toEqual([second.body.sid]);
    expect(
      await sids({ To: PERSON, "DateSent<": new Date((stage.clock.now() - 86_400) * 1000).toISOString() }),
    ).toEqual([first.body.sid]);
    const page = await call("Messages.json?PageSize=2");
    expect(page.body.messages).toHaveLength(2);
    const next = await fetch(`${stage.sandbox.url}${page.body.next_page_uri}`, {
      headers: { authorization: basic(accountSid, authToken) },
    });
    expect(((await next.json()) as typeof page.body).messages).toMatchObject([{ sid: first.body.sid }]);
  });

  it("end as a knob says, or get stuck", async () => {
    stage.sandbox.knobs.patch({
      twilio: { finalStatus: { [PERSON]: { status: "undelivered", code: 30005 } }, stepSeconds: 2 },
    });
    const failing = await create();
    await stage.clock.advance(7.9);
    expect((await fetchText(failing.body.sid)).body.status).toBe("sent");
    await stage.clock.advance(0.1);
    expect((await fetchText(failing.body.sid)).body).toMatchObject({ status: "undelivered", error_code: 30005 });
    stage.sandbox.knobs.patch({ twilio: { stuckAt: "sending", finalStatus: {} } });
    const stuck = await create();
    await stage.clock.advance(86_400);
    expect((await fetchText(stuck.body.sid)).body.status).toBe("sending");
    await stage.sandbox.act(stage.sandbox.inbox.all()[1]!, { action: "deliver" });
    expect((await fetchText(stuck.body.sid)).body.status).toBe("delivered");
  });

  it("vanish when their resource is deleted", async () => {
    const { body } = await create();
    stage.sandbox.knobs.patch({ twilio: { deleteResource: body.sid } });
    expect((await fetchText(body.sid)).status).toBe(404);
    stage.sandbox.knobs.patch({ twilio: { deleteResource: null } });
    expect((await fetchText(body.sid)).status).toBe(200);
  });
});

describe("Twilio's status callbacks", () => {
  it("come for each step, in order, with a signature that holds", async () => {
    const { body } = await create(PERSON, callback());
    await stage.clock.advance(10);
    await eventually(() => calls().length === 4);
    expect(told()).toEqual(["queued", "sending", "sent", "delivered"]);
    expect(calls().every(hasRightSignature)).toBe(true);
    expect(fieldsOf(calls()[3]!)).toMatchObject({ MessageSid: body.sid, AccountSid: accountSid, To: PERSON });
    const [message] = stage.sandbox.inbox.all();
    await eventually(() => message!.webhooks.length === 4);
    expect(message!.webhooks).toMatchObject([{ kind: "queued", answered: 200 }, {}, {}, {}]);
  });

  it("tell the code of a failure", async () => {
    stage.sandbox.knobs.patch({ twilio: { finalStatus: { [PERSON]: { status: "failed", code: 30007 } } } });
    await create(PERSON, callback());
    await stage.clock.advance(5);
    await eventually(() => calls().length === 3);
    expect(fieldsOf(calls()[2]!)).toMatchObject({ MessageStatus: "failed", ErrorCode: "30007" });
  });

  it("stay away when they are off", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "off" } });
    await create(PERSON, callback());
    await stage.clock.advance(10);
    stage.sandbox.knobs.patch({ twilio: { callbacks: "on" } });
    await create(PERSON, callback());
    await stage.clock.advance(10);
    await eventually(() => calls().length === 4);
    expect(stage.sandbox.inbox.all()[0]!.webhooks).toEqual([]);
  });

  it("come late", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "delay", callbackDelaySeconds: 100, stuckAt: "queued" } });
    await create(PERSON, callback());
    await stage.clock.advance(100);
    expect(calls()).toEqual([]);
    await stage.clock.advance(1);
    await eventually(() => calls().length === 1);
  });

  it("come twice", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "duplicate", stuckAt: "sending" } });
    await create(PERSON, callback());
    await stage.clock.advance(5);
    await eventually(() => calls().length === 4);
    expect(told()).toEqual(["queued", "queued", "sending", "sending"]);
  });

  it("overtake each other", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "reorder" } });
    await create(PERSON, callback());
    await stage.clock.advance(5);
    await eventually(() => calls().length === 4);
    expect(told()).toEqual(["sending", "queued", "delivered", "sent"]);
    expect(calls().every(hasRightSignature)).toBe(true);
  });

  it("have a signature that does not hold", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "badSignature", stuckAt: "queued" } });
    await create(PERSON, callback());
    await stage.clock.advance(1);
    await eventually(() => calls().length === 1);
    expect(hasRightSignature(calls()[0]!)).toBe(false);
    expect(Buffer.from(String(calls()[0]!.headers["x-twilio-signature"]), "base64")).toHaveLength(20);
  });

  it("have a blank field that is signed too", async () => {
    stage.sandbox.knobs.patch({ twilio: { callbacks: "blankField", stuckAt: "queued" } });
    await create(PERSON, callback());
    await stage.clock.advance(1);
    await eventually(() => calls().length === 1);
    expect(fieldsOf(calls()[0]!).ErrorCode).toBe("");
    expect(hasRightSignature(calls()[0]!)).toBe(true);
  });

  it("are not sent for steps that an action has replaced, and are repeated by another", async () => {
    await create(PERSON, callback());
    const [message] = stage.sandbox.inbox.all();
    await stage.sandbox.act(message!, { action: "fail", code: 30006 });
    await stage.clock.advance(10);
    await eventually(() => calls().length === 1);
    await stage.sandbox.act(message!, { action: "resend" });
    await eventually(() => calls().length === 2);
    expect(calls().map(fieldsOf)).toMatchObject([
      { MessageStatus: "undelivered", ErrorCode: "30006" },
      { MessageStatus: "undelivered", ErrorCode: "30006" },
    ]);
  });
});

describe("texts from people", () => {
  it("are posted with a signature, and STOP holds until START", async () => {
    await create();
    const [message] = stage.sandbox.inbox.all();
    expect(await stage.sandbox.act(message!, { action: "reply", text: "Stop." })).toEqual({ answered: 200 });
    const [inbound] = calls();
    expect(inbound!.path).toBe("/api/1/sms/inbound_webhook");
    expect(fieldsOf(inbound!)).toMatchObject({ From: PERSON, To: "+15005550006", Body: "Stop." });
    expect(hasRightSignature(inbound!)).toBe(true);
    expect((await create()).body.code).toBe(21610);
    await stage.sandbox.twilio.inbound({ from: PERSON, body: "we end at noon" });
    expect((await create()).status).toBe(400);
    await stage.sandbox.twilio.inbound({ from: PERSON, body: "START" });
    expect((await create()).status).toBe(201);
    expect(stage.sandbox.inbox.list({ channel: "sms" }).filter(({ direction }) => direction === "in")).toHaveLength(3);
  });
});

describe("Twilio's faults", () => {
  it("fail the next requests with the code that fits or was asked for", async () => {
    stage.sandbox.knobs.patch({ twilio: { failNext: { status: 429, count: 1 } } });
    expect((await create()).body).toMatchObject({ code: 20429, status: 429 });
    stage.sandbox.knobs.patch({ twilio: { failNext: { status: 400, count: 1, code: 30022 } } });
    expect((await create()).body.code).toBe(30022);
    stage.sandbox.knobs.patch({ twilio: { failNext: { status: 429, count: 1, code: null } } });
    expect((await create()).body.code).toBeUndefined();
    expect((await create()).status).toBe(201);
  });

  it("happen at their rate, by the seed", async () => {
    const run = async (seed: number) => {
      await stage.close();
      stage = await openStage({ seed });
      stage.sandbox.knobs.patch({ twilio: { errorRate: 0.5 } });
      const seen: (string | number)[] = [];
      for (let index = 0; index < 20; index++) {
        const { status, body } = await create();
        seen.push(status === 201 ? body.sid : status);
      }
      return seen.join(" ");
    };
    const first = await run(3);
    expect(first).toMatch(/500.*SM|SM.*500/);
    expect(await run(3)).toBe(first);
    expect(await run(4)).not.toBe(first);
  });

  it("cut the answer of a message that was created, limit the rate, take time, and last", async () => {
    stage.sandbox.knobs.patch({ twilio: { dropConnectionAfterCreate: 1 } });
    await expect(create()).rejects.toThrow();
    expect((await call(`Messages.json?To=${encodeURIComponent(PERSON)}`)).body.messages).toHaveLength(1);
    await stage.clock.advance(1);
    stage.sandbox.knobs.patch({ twilio: { ratePerSecond: 1 } });
    expect([(await create()).status, (await create()).body.code]).toEqual([201, 20429]);
    const now = stage.clock.now();
    stage.sandbox.knobs.patch({ twilio: { ratePerSecond: null, outage: { from: now, until: now + 5 } } });
    expect((await create()).status).toBe(503);
    await stage.clock.advance(5);
    stage.sandbox.knobs.patch({ twilio: { latencyMs: 500 } });
    const slow = create();
    await eventually(() => stage.clock.sleeping > 0);
    await stage.clock.advance(0.5);
    expect((await slow).status).toBe(201);
  });
});
