import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../kernel/log.ts";
import type { StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import type { SmsOutcome } from "../../providers/sms.ts";
import { TwilioSms } from "../../providers/twilio.ts";
import type { SmsEvent } from "./entries.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsPollingStats, smsSendStats } from "./stats.ts";

/** What every answer of the provider means for the text it is about: when it is sent, when it is asked about, and as news. */
let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const PERSON = "+14155550132";
const report = (key: string) => house.ctx.redis.commands.hgetall(key);

/** Another process whose provider does as told. */
const withProvider = (provider: object) =>
  Object.assign(house.process(), { providers: { sms: provider } }) as SmsContext;

const nobodyListens = () =>
  new TwilioSms({
    baseUrl: "http://127.0.0.1:9",
    accountSid: "AC",
    authToken: "x",
    messagingServiceSid: "MG",
    timeout: 20,
    userAgent: "carillon/test",
    clock: house.base.clock,
    log: silentLog,
  });

const resource = (sid: string, status: string) => ({
  sid,
  status,
  errorCode: null,
  errorMessage: null,
  dateUpdated: null,
});
const internalError = { ok: false, identifier: "InternalError", subidentifier: null, retryable: false, extra: "odd" };

async function expectCounted(family: StatsFamily, events: Record<string, number>, event: string, word: string | null) {
  const counts = await house.counts(family);
  expect(counts.events).toEqual(events);
  expect(counts.words[event]).toEqual(word === null ? undefined : { [word]: 1 });
}

interface SendRow {
  /** As the name of its test says it. */
  readonly answer: string;
  readonly knobs?: object;
  readonly provider?: () => object;
  readonly event: string;
  readonly identifier: string;
  readonly word: string | null;
  readonly retryable: boolean;
}

const failing = (status: number, event: string, identifier: string, word: string | null, code?: number): SendRow => ({
  answer: `the status ${status}${code === undefined ? "" : ` with the code ${code}`}`,
  knobs: { failNext: { status, count: 1, code: code ?? null } },
  event: `failed_due_to_${event}`,
  identifier,
  word,
  retryable: status === 429 || status >= 500,
});

const SEND_ROWS: readonly SendRow[] = [
  failing(429, "application_error_ratelimit", "ApplicationErrorRatelimit", "20429", 20429),
  failing(400, "application_error_other", "ApplicationErrorOther", "21612", 21612),
  failing(429, "client_error_429", "ClientError429", null),
  failing(400, "client_error_other", "ClientErrorOther", "400"),
  failing(404, "client_error_other", "ClientErrorOther", "404"),
  failing(503, "server_error", "ServerError", "503"),
  {
    answer: "nothing",
    provider: () => ({
      create: async (message: never) => ({ ...(await nobodyListens().create(message)), provider: "x" }),
    }),
    event: "failed_due_to_network_error",
    identifier: "NetworkError",
    word: null,
    retryable: true,
  },
  {
    answer: "a sid of unknown form",
    provider: () => ({
      create: async () => ({ ok: true, state: "pending", resource: resource("odd", "queued"), provider: "x" }),
    }),
    event: "failed_due_to_internal_error",
    identifier: "InternalError",
    word: null,
    retryable: false,
  },
];

for (const { answer, knobs = {}, provider, event, identifier, word, retryable } of SEND_ROWS)
  test(`a provider that answers ${answer} to a text: it counts as ${event}, and its failure job hears why`, async () => {
    house.sandbox.knobs.patch({ twilio: knobs });
    const uid = await house.text(PERSON);
    await house.run(send, provider ? withProvider(provider()) : house.ctx);
    await expectCounted(smsSendStats, { queued: 1, [event]: 1 }, event, word);
    expect(await report(keys.sendReport())).toMatchObject({
      attempted: "1",
      pending: "0",
      succeeded: "0",
      failed_transiently: retryable ? "1" : "0",
      failed_permanently: retryable ? "0" : "1",
    });
    expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
    expect(house.stories).toMatchObject([
      {
        sms: { aud: "send", uid, retry: 0, phone_number: PERSON },
        failure_info: { action: "send", identifier, subidentifier: word, retryable },
      },
    ]);
    expect(await house.length(keys.retrying())).toBe(retryable ? 1 : 0);
    await house.audit();
  });

test("a text that is on its way at once counts by its status, and its success job hears all about it", async () => {
  const sid = `SM${"1".repeat(32)}`;
  const create = async (): Promise<SmsOutcome & { provider: string }> => ({
    ok: true,
    state: "succeeded",
    resource: { ...resource(sid, "sent"), dateUpdated: 1_772_000_000 },
    provider: "x",
  });
  const uid = await house.text(PERSON, "on its way");
  const now = house.base.clock.now();
  await house.run(send, withProvider({ create }));
  await expectCounted(smsSendStats, { queued: 1, succeeded_immediate: 1 }, "succeeded_immediate", "sent");
  expect(await report(keys.sendReport())).toMatchObject({ attempted: "1", pending: "0", succeeded: "1" });
  expect(await house.callbacks()).toEqual(["runners.sms.default_success"]);
  expect(house.stories).toEqual([
    {
      sms: { aud: "success", uid, initially_queued_at: now, phone_number: PERSON, body: "on its way" },
      result: {
        message_resource_created_at: expect.closeTo(now, 0),
        message_resource_succeeded_at: expect.closeTo(now, 0),
        message_resource: { sid, status: "sent", error_code: null, date_updated: 1_772_000_000 },
      },
    },
  ]);
  expect(await house.length(keys.pending())).toBe(0);
});

/** A text that the provider took, and about which it is to be asked now. */
async function silentText(): Promise<string> {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  await house.text(PERSON);
  await house.run(send);
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  return sid!;
}

interface AskRow {
  readonly answer: string;
  readonly knobs?: (sid: string) => object;
  readonly provider?: () => object;
  readonly event: string;
  readonly word: string | null;
  readonly count: string;
  /** The status of the news that follows from it. */
  readonly news: string | null;
}

const statusAsked = (status: number, event: string, word: string | null, count: string): AskRow => ({
  answer: `the status ${status}`,
  knobs: () => ({ failNext: { status, count: 1, code: null } }),
  event,
  word,
  count,
  news: null,
});
const told = (status: string, count: string): AskRow => ({
  answer: `that it is ${status}`,
  provider: () => ({ fetch: async (sid: string) => ({ ok: true, resource: resource(sid, status) }) }),
  event: "received",
  word: `accepted:${status}`,
  count,
  news: status,
});

const ASK_ROWS: readonly AskRow[] = [
  told("sending", "pending"),
  told("delivered", "succeeded"),
  told("undelivered", "failed"),
  {
    ...statusAsked(404, "error_client_404", null, "lost"),
    knobs: (sid) => ({ deleteResource: sid }),
    news: "lost",
  },
  statusAsked(429, "error_client_429", null, "transient_error"),
  statusAsked(400, "error_client_other", "400", "permanent_error"),
  statusAsked(503, "error_server", "503", "transient_error"),
  {
    answer: "nothing",
    provider: nobodyListens,
    event: "error_network",
    word: null,
    count: "transient_error",
    news: null,
  },
  {
    answer: "what nobody understands",
    provider: () => ({ fetch: async () => internalError }),
    event: "error_internal",
    word: null,
    count: "permanent_error",
    news: null,
  },
];

for (const { answer, knobs, provider, event, word, count, news } of ASK_ROWS)
  test(`a provider that is asked about a silent text and answers ${answer}: it counts as ${event} and as ${count}`, async () => {
    const sid = await silentText();
    if (knobs) house.sandbox.knobs.patch({ twilio: knobs(sid) });
    await house.run(receiptRecovery, provider ? withProvider(provider()) : house.ctx);
    const events = { detected_stale: 1, queued_for_recovery: 1, attempted: 1, [event]: 1 };
    await expectCounted(smsPollingStats, events, event, word);
    const { started_at, finished_at, running_time, ...rest } = await report(keys.recoveryReport());
    const kinds = ["pending", "succeeded", "failed", "lost", "permanent_error", "transient_error"];
    expect(rest).toEqual({
      stop_reason: "list_exhausted",
      attempted: "1",
      ...Object.fromEntries(kinds.map((kind) => [kind, kind === count ? "1" : "0"])),
    });
    const waiting = (await house.ctx.redis.commands.lrange(keys.event(), 0, -1)).map((raw) => JSON.parse(raw).status);
    expect(waiting).toEqual(news === null ? [] : [news]);
    // No answer ends a text but through its news; without any it comes due again.
    expect([await house.length(keys.pending()), await house.length(keys.recovery())]).toEqual([1, 0]);
    await house.audit();
  });

test("a provider that refuses our credentials when it is asked about silent texts: they wait again in order, and nothing is counted", async () => {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  for (const number of ["+14155550101", "+14155550102", "+14155550103"]) await house.text(number);
  await house.run(send);
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  const asked = await house.ctx.redis.commands.lrange(keys.recovery(), 0, -1);
  expect(asked).toHaveLength(3);
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 401, count: 99, code: 20003 } } });
  await house.run(receiptRecovery);
  expect(await house.ctx.redis.commands.lrange(keys.recovery(), 0, -1)).toEqual(asked);
  expect(await house.length(keys.recoveryPurgatory())).toBe(0);
  expect((await house.counts(smsPollingStats)).events).toEqual({ detected_stale: 3, queued_for_recovery: 3 });
  expect(await report(keys.recoveryReport())).toMatchObject({ attempted: "0", permanent_error: "0" });
  expect(house.ctx.alerts.identifiers()).toContain("providers:credentials");
  await house.audit();
  house.sandbox.knobs.patch({ twilio: { failNext: null } });
  await house.run(receiptRecovery);
  expect((await house.counts(smsPollingStats)).events).toMatchObject({ attempted: 3, received: 3 });
});

test("the failure job of a silent text hears the whole message as it is after the silence was noted", async () => {
  const sid = await silentText();
  const [{ sms, failure_info }] = house.stories as unknown as [Record<"sms" | "failure_info", Record<string, unknown>>];
  const now = house.base.clock.now();
  const { uid, send_initially_queued_at, message_resource_created_at, body, failure_job, success_job, ...rest } = sms;
  expect([uid, body]).toEqual([expect.stringMatching(/sms/), expect.stringContaining("breathe")]);
  expect([failure_job, success_job]).toEqual(
    ["failure", "success"].map((which) => ({ name: `runners.sms.default_${which}`, kwargs: {} })),
  );
  expect(message_resource_created_at).toBeGreaterThanOrEqual(send_initially_queued_at as number);
  expect(rest).toEqual({
    aud: "pending",
    message_resource_last_updated_at: message_resource_created_at,
    message_resource: { sid, status: "accepted", error_code: null, date_updated: expect.any(Number) },
    failure_job_last_called_at: expect.closeTo(now, 0),
    num_failures: 1,
    num_changes: 1,
    phone_number: PERSON,
  });
  expect(failure_info).toEqual({
    action: "pending",
    identifier: "StuckPending",
    subidentifier: null,
    retryable: true,
    extra: null,
  });
});

const ENDS: readonly [news: Partial<SmsEvent>, identifier: string, subidentifier: string | null][] = [
  [{ status: "lost", received_via: "poll" }, "ClientError404", null],
  [{ status: "undelivered", error_code: "30003", error_message: "off" }, "ApplicationErrorOther", "30003"],
  [{ status: "failed" }, "ApplicationErrorOther", "failure_status_without_error_code"],
  [{ status: "canceled" }, "ApplicationErrorOther", "failure_status_without_error_code"],
];

for (const [news, identifier, subidentifier] of ENDS)
  test(`a text that is ${news.status} fails for good, and its failure job hears ${identifier} ${subidentifier}`, async () => {
    const sid = await silentText();
    const told = {
      sid,
      error_code: null,
      error_message: null,
      date_updated: null,
      information_received_at: house.base.clock.now(),
      received_via: "webhook",
      ...news,
    };
    await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(told));
    await house.run(receiptReconciliation);
    await house.callbacks();
    const { error_code, error_message } = told;
    expect(house.stories.slice(1)).toMatchObject([
      {
        sms: { aud: "pending", message_resource: { sid, status: news.status, error_code }, num_changes: 2 },
        failure_info: { action: "pending", identifier, subidentifier, retryable: false, extra: error_message },
      },
    ]);
    // Whether it was given up is known already: nobody asks about it again.
    expect([await house.length(keys.pending()), (await house.counts(smsPollingStats)).events.abandoned]).toEqual([
      0,
      undefined,
    ]);
  });
