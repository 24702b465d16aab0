import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { EmailChannel, PushChannel, SmsChannel } from "./channels.ts";
import { testMail } from "./email.conformance.ts";
import type { EmailFailure, EmailOutcome, EmailProvider } from "./email.ts";
import { CIRCUIT_THRESHOLD, CIRCUIT_WINDOW, providerKeys } from "./keys.ts";
import type { PushProvider, TicketOutcome } from "./push.ts";
import type { SmsFetchOutcome, SmsListOutcome, SmsProvider } from "./sms.ts";

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(async () => {
  await ctx.flush();
  ctx.alerts.recorded.length = 0;
});
afterAll(() => ctx.close());

const mail = testMail("a@example.org");
const failure = (flags: Partial<EmailFailure>): EmailFailure => ({
  ok: false,
  identifier: "SESServerError",
  subidentifier: "x",
  retryable: true,
  extra: null,
  ...flags,
});
const down = failure({ outage: true, backoff: true });
const refused = failure({ identifier: "SESClientError", retryable: false, credentials: true });

/** A provider whose next answers can be chosen; it accepts otherwise. */
class Scripted implements EmailProvider {
  readonly name: string;
  readonly hasReceipts: boolean;
  answer: EmailOutcome | undefined;
  calls = 0;
  resets = 0;
  closed = false;

  constructor(name: string, hasReceipts = true) {
    this.name = name;
    this.hasReceipts = hasReceipts;
  }

  async send(): Promise<EmailOutcome> {
    this.calls += 1;
    return this.answer ?? { ok: true, messageId: `${this.name}-${this.calls}`, hasReceipts: this.hasReceipts };
  }

  quota = async () => undefined;

  async reset(): Promise<void> {
    this.resets += 1;
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

const times = async (count: number, act: () => Promise<unknown>) => {
  for (let at = 0; at < count; at++) await act();
};
const errorsOf = (provider: string) => ctx.redis.commands.zcard(providerKeys.errors({ channel: "email", provider }));

describe("the providers of a channel", () => {
  test("the first one carries while it works, and the outcome names it", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second", false)];
    const channel = new EmailChannel(ctx, [first, second]);
    expect(await channel.send(mail)).toEqual({
      ok: true,
      messageId: "first-1",
      hasReceipts: true,
      provider: "first",
    });
    expect(second.calls).toBe(0);
    expect(channel.hasReceipts).toBe(true);
  });

  test("after ten outages the next one takes over, and five minutes later the first is asked again", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second", false)];
    const channel = new EmailChannel(ctx, [first, second]);
    first.answer = down;
    await times(CIRCUIT_THRESHOLD - 1, async () =>
      expect(await channel.send(mail)).toEqual({ ...down, provider: "first" }),
    );
    // The last one comes back without a word of waiting: the next mail goes elsewhere.
    const { backoff: _, ...last } = down;
    expect(await channel.send(mail)).toEqual({ ...last, provider: "first" });
    expect(second.calls).toBe(0);
    expect(await channel.send(mail)).toMatchObject({ ok: true, provider: "second", hasReceipts: false });
    expect(first.calls).toBe(CIRCUIT_THRESHOLD);
    expect(ctx.alerts.identifiers()).toEqual(["providers:circuit_open"]);
    first.answer = undefined;
    await ctx.clock.advance(CIRCUIT_WINDOW - 10);
    expect(await channel.send(mail)).toMatchObject({ provider: "second" });
    await ctx.clock.advance(11);
    expect(await channel.send(mail)).toMatchObject({ ok: true, provider: "first" });
  });

  test("of many calls that fail together, one tells people that the circuit is open", async () => {
    const only = new Scripted("first");
    only.answer = down;
    const channel = new EmailChannel(ctx, [only]);
    await Promise.all(Array.from({ length: 2 * CIRCUIT_THRESHOLD }, () => channel.send(mail)));
    expect(ctx.alerts.identifiers()).toEqual(["providers:circuit_open"]);
  });

  test("an outage that one process met is known to all others within a second", async () => {
    const ours = [new Scripted("first"), new Scripted("second")] as const;
    const theirs = [new Scripted("first"), new Scripted("second")] as const;
    const [here, there] = [new EmailChannel(ctx, ours), new EmailChannel(ctx.process(), theirs)];
    expect(await there.send(mail)).toMatchObject({ provider: "first" });
    ours[0].answer = down;
    await times(CIRCUIT_THRESHOLD, () => here.send(mail));
    await ctx.clock.advance(1);
    expect(await there.send(mail)).toMatchObject({ provider: "second" });
  });

  test("a message whose outcome is unknown is never given to a second provider in the same breath", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = failure({ identifier: "SESNetworkError", outage: true });
    expect(await new EmailChannel(ctx, [first, second]).send(mail)).toMatchObject({
      ok: false,
      provider: "first",
      retryable: true,
    });
    expect(second.calls).toBe(0);
  });

  test("a message that was surely not taken goes to the next one in the same breath, and the outage is noted", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = failure({ identifier: "SESNetworkError", outage: true, untaken: true });
    const channel = new EmailChannel(ctx, [first, second]);
    expect(await channel.send(mail)).toMatchObject({ ok: true, provider: "second" });
    expect(await errorsOf("first")).toBe(1);
    second.answer = failure({ outage: true });
    expect(await channel.send(mail)).toMatchObject({ ok: false, provider: "second" });
    second.answer = failure({ outage: true, untaken: true });
    expect(await channel.send(mail)).toMatchObject({ ok: false, provider: "first", untaken: true });
  });

  test("what one provider calls impossible is not tried on the next", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = failure({ identifier: "SESClientError", subidentifier: "MessageRejected", retryable: false });
    expect(await new EmailChannel(ctx, [first, second]).send(mail)).toEqual({ ...first.answer, provider: "first" });
    expect(second.calls).toBe(0);
  });

  test("when all are down the preferred one is tried all the same, and the message may be tried again", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = down;
    second.answer = down;
    const channel = new EmailChannel(ctx, [first, second]);
    await times(2 * CIRCUIT_THRESHOLD, () => channel.send(mail));
    expect([first.calls, second.calls]).toEqual([CIRCUIT_THRESHOLD, CIRCUIT_THRESHOLD]);
    expect(await channel.send(mail)).toEqual({ ...down, provider: "first" });
    first.answer = undefined;
    expect(await channel.send(mail)).toMatchObject({ ok: true, provider: "first" });
  });

  test("refusals of a message and requests to slow down open no circuit", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    const channel = new EmailChannel(ctx, [first, second]);
    for (const answer of [failure({ retryable: false }), failure({ backoff: true })]) {
      first.answer = answer;
      await times(2 * CIRCUIT_THRESHOLD, async () => expect(await channel.send(mail)).toMatchObject({ ok: false }));
    }
    expect(second.calls).toBe(0);
    expect(await errorsOf("first")).toBe(0);
  });

  test("wrong credentials of one send the message on at once, and are told once an hour", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = refused;
    const channel = new EmailChannel(ctx, [first, second]);
    await times(20, async () => expect(await channel.send(mail)).toMatchObject({ ok: true, provider: "second" }));
    expect(await errorsOf("first")).toBe(0);
    const told = () => ctx.alerts.recorded.map(({ level, identifier }) => `${level} ${identifier}`);
    expect(told()).toEqual(["urgent providers:credentials"]);
    await ctx.clock.advance(3601);
    await channel.send(mail);
    expect(told()).toHaveLength(2);
  });

  test("wrong credentials everywhere come back as such, so that the message is put back", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = refused;
    second.answer = refused;
    const channel = new EmailChannel(ctx, [first, second]);
    expect(await channel.send(mail)).toEqual({ ...refused, provider: "first" });
    expect([first.calls, second.calls]).toEqual([1, 1]);
  });

  test("a channel without providers keeps its messages and tells somebody", async () => {
    const waits = { ok: false, credentials: true, retryable: false, extra: "no provider is configured" };
    expect(await new EmailChannel(ctx, []).send(mail)).toMatchObject({ ...waits, provider: null });
    const sms = new SmsChannel(ctx, []);
    expect(await sms.create({ to: "+1", body: "x" })).toMatchObject({ ...waits, provider: null });
    expect(await sms.fetch("SM")).toMatchObject(waits);
    expect(await sms.list({ to: "+1", since: 0 })).toMatchObject(waits);
    const push = new PushChannel(ctx, []);
    const message = { to: "t", title: "t", body: "b" };
    expect(await push.send([message, message])).toEqual([
      expect.objectContaining({ ...waits, provider: null }),
      expect.objectContaining({ ...waits, provider: null }),
    ]);
    expect((await push.receipts(["a"])).get("a")).toMatchObject(waits);
    expect(ctx.alerts.recorded.map(({ text }) => text)).toEqual([
      "email has no provider: its messages wait until one is configured",
      "sms has no provider: its messages wait until one is configured",
      "push has no provider: its messages wait until one is configured",
    ]);
  });

  test("without Redis outcomes are passed on as they are", async () => {
    const broken = {
      commands: {},
      run: () => Promise.reject(new Error("no Redis")),
    } as unknown as TestContext["redis"];
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    first.answer = down;
    const channel = new EmailChannel(ctx.process({ redis: broken }), [first, second]);
    await times(20, async () => expect(await channel.send(mail)).toEqual({ ...down, provider: "first" }));
  });

  test("the quota is that of whoever gets the next mail", async () => {
    const [first, second] = [new Scripted("first"), new Scripted("second")];
    const quotaOf = (maxPerSecond: number) => async () => ({
      maxPerSecond,
      max24h: 1,
      sent24h: 0,
      sendingEnabled: true,
    });
    Object.assign(first, { quota: quotaOf(1) });
    Object.assign(second, { quota: quotaOf(2) });
    const channel = new EmailChannel(ctx, [first, second]);
    expect(await channel.quota()).toMatchObject({ maxPerSecond: 1 });
    first.answer = down;
    await times(CIRCUIT_THRESHOLD, () => channel.send(mail));
    expect(await channel.quota()).toMatchObject({ maxPerSecond: 2 });
    expect(await new EmailChannel(ctx, []).quota()).toBeUndefined();
  });

  test("a report tells who carried its mail where only one provider has its mails reported on", () => {
    const [silent, one, other] = [new Scripted("silent", false), new Scripted("one"), new Scripted("other")];
    const reporter = (...providers: Scripted[]) => new EmailChannel(ctx, providers).reporter;
    expect([reporter(silent, one), reporter(one, other), reporter(silent), reporter()]).toEqual([
      "one",
      null,
      null,
      null,
    ]);
  });

  test("resetting and closing reach every provider, and a name may stand only once", async () => {
    const providers = [new Scripted("first"), new Scripted("second")];
    const channel = new EmailChannel(ctx, providers);
    await channel.reset();
    await channel.close();
    expect(providers.map(({ resets, closed }) => [resets, closed])).toEqual([
      [1, true],
      [1, true],
    ]);
    expect(() => new EmailChannel(ctx, [new Scripted("twin"), new Scripted("twin")])).toThrow("names a provider twice");
  });
});

describe("what was carried is asked about where it is known", () => {
  const pushNamed = (name: string): PushProvider & { answer?: TicketOutcome; asked: string[][] } => ({
    name,
    asked: [],
    async send(messages) {
      return messages.map(({ to }) => this.answer ?? { ok: true, ticket: ticket(`${name}:${to}`) });
    },
    async receipts(ids) {
      this.asked.push([...ids]);
      return new Map(ids.map((id) => [id, { ok: true, receipt: { status: "ok", message: null, details: null } }]));
    },
  });
  const ticket = (id: string) => ({ status: "ok" as const, id, message: null, details: null });

  test("receipts are asked of the provider that gave the ticket, or of the preferred one", async () => {
    const [first, second] = [pushNamed("first"), pushNamed("second")];
    const channel = new PushChannel(ctx, [first, second]);
    await channel.receipts(["a"], "second");
    await channel.receipts(["b"]);
    await channel.receipts(["c"], "gone");
    expect([first.asked, second.asked]).toEqual([[["b"], ["c"]], [["a"]]]);
  });

  test("a failed request counts once, however many messages it held", async () => {
    const [first, second] = [pushNamed("first"), pushNamed("second")];
    const channel = new PushChannel(ctx, [first, second]);
    const batch = Array.from({ length: 100 }, (_, at) => ({ to: String(at), title: "t", body: "b" }));
    first.answer = { ...failure({ outage: true }), identifier: "ServerError", ticket: null };
    await channel.send(batch);
    expect(await ctx.redis.commands.zcard(providerKeys.errors({ channel: "push", provider: "first" }))).toBe(1);
    first.answer = undefined;
    const outcomes = await channel.send(batch);
    expect(outcomes.at(-1)).toEqual({ ok: true, ticket: ticket("first:99"), provider: "first" });
  });

  test("a batch goes to the next provider only when none of it was taken", async () => {
    const [first, second] = [pushNamed("first"), pushNamed("second")];
    const channel = new PushChannel(ctx, [first, second]);
    const batch = ["a", "b"].map((to) => ({ to, title: "t", body: "b" }));
    const untaken: TicketOutcome = {
      ...failure({ outage: true, untaken: true }),
      identifier: "NetworkError",
      ticket: null,
    };
    first.answer = untaken;
    expect(await channel.send(batch)).toMatchObject([{ provider: "second" }, { provider: "second" }]);
    first.send = async () => [untaken, { ok: true, ticket: ticket("first:b") }];
    expect(await channel.send(batch)).toMatchObject([
      { ok: false, provider: "first" },
      { ok: true, provider: "first" },
    ]);
  });

  test("texts are looked up where they were created, and an outage there is noted", async () => {
    const fetched: string[] = [];
    const smsNamed = (name: string, outcome: SmsFetchOutcome): SmsProvider => ({
      name,
      create: async () => ({ ...outcome, state: "pending" }) as never,
      async fetch(sid) {
        fetched.push(`${name} ${sid}`);
        return outcome;
      },
      list: async () => ({ ok: true, messages: [] }),
    });
    const resource = { sid: "SM1", status: "sent", errorCode: null, errorMessage: null, dateUpdated: null };
    const outage = { ...failure({ outage: true }), identifier: "ServerError" as const };
    const channel = new SmsChannel(ctx, [smsNamed("first", { ok: true, resource }), smsNamed("second", outage)]);
    expect(await channel.fetch("SM1", "second")).toEqual(outage);
    expect(await channel.fetch("SM2")).toEqual({ ok: true, resource });
    expect(await channel.create({ to: "+1", body: "x" })).toMatchObject({ ok: true, provider: "first" });
    expect(fetched).toEqual(["second SM1", "first SM2"]);
    expect(await ctx.redis.commands.zcard(providerKeys.errors({ channel: "sms", provider: "second" }))).toBe(1);
  });

  test("a text whose carrier nobody wrote down is looked for at each provider", async () => {
    const gone: SmsFetchOutcome = { ...failure({ retryable: false }), identifier: "ClientError404" };
    const busy: SmsFetchOutcome = { ...failure({ outage: true }), identifier: "ServerError" };
    const resource = { sid: "SM1", status: "sent", errorCode: null, errorMessage: null, dateUpdated: null };
    const listed = (sid: string): SmsListOutcome => ({
      ok: true,
      messages: [{ ...resource, sid, to: "+1", body: "Hi", dateCreated: 1 }],
    });
    const saying = (name: string, fetched: SmsFetchOutcome, found: SmsListOutcome): SmsProvider => ({
      name,
      create: async () => ({ ok: true, state: "pending", resource }),
      fetch: async () => fetched,
      list: async () => found,
    });
    const channel = (first: SmsProvider, second: SmsProvider) => new SmsChannel(ctx, [first, second]);
    const knowing = saying("second", { ok: true, resource }, listed("SM2"));
    const both = channel(saying("first", gone, listed("SM1")), knowing);
    expect(await both.fetch("SM1")).toEqual({ ok: true, resource });
    const found = await both.list({ to: "+1", since: 0 });
    expect(found.ok && found.messages.map(({ sid, provider }) => [sid, provider])).toEqual([
      ["SM1", "first"],
      ["SM2", "second"],
    ]);
    // A text has one carrier: when that one tells of it, nobody else matters.
    const half = channel(saying("first", busy, busy), knowing);
    expect(await half.fetch("SM1")).toEqual({ ok: true, resource });
    // Who cannot tell may be the one that has it: the question stays open.
    expect(await half.list({ to: "+1", since: 0 })).toEqual(busy);
    for (const [one, other] of [
      [busy, gone],
      [gone, busy],
    ] as const)
      expect(await channel(saying("first", one, listed("SM1")), saying("second", other, busy)).fetch("SM1")).toEqual(
        busy,
      );
    const nobody = channel(saying("first", gone, listed("SM1")), saying("second", gone, listed("SM1")));
    expect(await nobody.fetch("SM1")).toEqual(gone);
  });
});
