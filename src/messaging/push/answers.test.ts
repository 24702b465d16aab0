import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { silentLog } from "../../kernel/log.ts";
import { ExpoPush } from "../../providers/expo.ts";
import { keys } from "./keys.ts";
import { acceptPushes, enqueuePushes, pushEntries } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, token } from "./push.fixture.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";
import { readFailure, readSuccess } from "./story.ts";

/** What every answer of the provider means for the notifications it is about, at both stages. */
let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const noted = {
  failureJob: { name: "runners.test.failure", kwargs: {} },
  successJob: { name: "runners.test.success", kwargs: {} },
};
const report = (key: string) => house.redis.commands.hgetall(raw(key));

interface Row {
  /** As the name of its test says it. */
  readonly answer: string;
  readonly knobs: object;
  readonly event: string;
  readonly identifier: string;
  readonly retryable: boolean;
  readonly extra: string | null;
}

const status = (code: number, event: string, identifier: string, retryable: boolean, extra = String(code)): Row => ({
  answer: `the status ${code}`,
  knobs: { failNext: { status: code, count: 1 } },
  event,
  identifier,
  retryable,
  extra,
});
const malformed = (answer: string, kind: string, extra: string): Row => ({
  answer,
  knobs: { malformed: kind },
  event: "internal_error",
  identifier: "InternalError",
  retryable: false,
  extra,
});
const forBoth = (name: string) => ({ ticketErrors: { [token("n0")]: name, [token("n1")]: name } });

const REQUEST_ROWS: readonly Row[] = [
  status(429, "client_error_429", "ClientError429", true, "hard"),
  status(400, "client_error_other", "ClientErrorOther", false),
  status(302, "client_error_other", "ClientErrorOther", false),
  status(500, "server_error", "ServerError", true),
  malformed("what is no JSON", "json", "JSON"),
  malformed("data of another kind", "structure", "data"),
  malformed("a list of errors", "errors", "SANDBOX"),
  malformed("items of an unknown status", "item", "perhaps"),
];
const SEND_ROWS: readonly Row[] = [
  ...REQUEST_ROWS,
  malformed("too few tickets", "count", "1 tickets for 2"),
  {
    answer: "nothing, after it took them",
    knobs: { dropConnectionAfterAccept: 1 },
    event: "network_error",
    identifier: "NetworkError",
    retryable: true,
    extra: "",
  },
  { ...malformed("an error of unknown name", "", "Unheard"), knobs: forBoth("Unheard") },
  {
    answer: "that the devices are gone",
    knobs: forBoth("DeviceNotRegistered"),
    event: "device_not_registered",
    identifier: "DeviceNotRegistered",
    retryable: false,
    extra: null,
  },
];

for (const { answer, knobs, event, identifier, retryable, extra } of SEND_ROWS)
  test(`a provider that answers ${answer} when it is sent notifications: each of them counts as ${event}`, async () => {
    house.sandbox.knobs.patch({ expo: knobs });
    await house.queue(2, noted);
    await house.run("send");
    expect(await house.counts(pushTicketStats)).toEqual({ queued: 2, [`failed_due_to_${event}`]: 2 });
    const stories = (await house.takeCallbacks()).map(({ kwargs }) => readFailure(kwargs.data_raw));
    const told = extra === null ? null : expect.stringContaining(extra);
    const info = { action: "send", identifier, retryable, extra: told, receipt: null };
    expect(stories.map(({ failure_info }) => failure_info)).toMatchObject([info, info]);
    expect(await report(keys.sendReport())).toMatchObject({
      last_num_messages_attempted: "2",
      last_num_succeeded: "0",
      [retryable ? "last_num_failed_transiently" : "last_num_failed_permanently"]: "2",
    });
    expect(await house.length(keys.sendPurgatory())).toBe(0);
  });

/** Two tickets that are to be asked about. */
async function twoHot(): Promise<void> {
  await house.queue(2, noted);
  await house.run("send");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
}

for (const { answer, knobs, event, identifier, retryable, extra } of REQUEST_ROWS)
  test(`a provider that answers ${answer} when it is asked for receipts: each ticket counts as ${event}`, async () => {
    await twoHot();
    house.sandbox.knobs.patch({ expo: knobs });
    await house.run("check");
    expect(await house.counts(pushReceiptStats)).toEqual({ [`failed_due_to_${event}`]: 2 });
    const stories = (await house.takeCallbacks()).map(({ kwargs }) => readFailure(kwargs.data_raw));
    const info = { action: "check", identifier, retryable, extra: expect.stringContaining(extra!), ticket: null };
    expect(stories.map(({ failure_info }) => failure_info)).toMatchObject([info, info]);
    expect(await report(keys.checkReport())).toMatchObject({
      last_num_checked: "2",
      [retryable ? "last_num_failed_transiently" : "last_num_failed_permanently"]: "2",
    });
    expect(await house.length(keys.ticketPurgatory())).toBe(0);
  });

test("a provider that cannot be reached for receipts counts as a passing failure of every ticket", async () => {
  await twoHot();
  const process = house.another();
  const options = { timeout: 20, userAgent: "carillon/test", clock: house.clock, log: silentLog };
  const gone = new ExpoPush({ ...options, baseUrl: "http://127.0.0.1:9" });
  process.ctx.providers.push.receipts = (ids) => gone.receipts(ids);
  await house.run("check", process);
  expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_network_error: 2 });
  expect(await report(keys.checkReport())).toMatchObject({ last_num_checked: "2", last_num_failed_transiently: "2" });
});

test("a device that our credentials are not good for fails alone, where the provider took the others of its request", async () => {
  const process = house.another();
  const refused = { ok: false, identifier: "ClientErrorOther", retryable: false, extra: "403", credentials: true };
  Object.assign(process.ctx.providers.push, {
    send: async (messages: readonly { to: string }[]) =>
      messages.map(({ to }) =>
        to === token("n1")
          ? { ...refused, subidentifier: null, ticket: null, provider: "expo" }
          : { ok: true, ticket: { status: "ok", id: to }, provider: "expo" },
      ),
  });
  await house.queue(4, noted);
  await house.run("send", process);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 4, succeeded: 3, failed_due_to_client_error_other: 1 });
  expect(await house.length(keys.toSend())).toBe(0);
  expect(await report(keys.sendReport())).toMatchObject({ last_stop_reason: "list_exhausted" });
});

test("tickets with the same id share one receipt, and what the provider says of others is nobody's", async () => {
  const process = house.another();
  const asked: string[][] = [];
  const ok = { ok: true, receipt: { status: "ok", message: null, details: null } };
  Object.assign(process.ctx.providers.push, {
    send: async (messages: readonly unknown[]) =>
      messages.map(() => ({ ok: true, ticket: { status: "ok", id: "same" }, provider: "expo" })),
    receipts: async (ids: readonly string[]) => {
      asked.push([...ids]);
      return new Map([
        ["same", ok],
        ["foreign", ok],
      ]);
    },
  });
  await house.queue(3, noted);
  await house.run("send", process);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check", process);
  expect(asked).toEqual([["same"]]);
  const stories = (await house.takeCallbacks()).map(({ kwargs }) => readSuccess(kwargs.data_raw));
  expect(stories.map(({ result }) => result.ticket.id)).toEqual(["same", "same", "same"]);
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 3 });
});

test("each ticket is asked of the provider that gave it", async () => {
  const process = house.another();
  const asked = new Map<string | null | undefined, readonly string[]>();
  let sent = 0;
  Object.assign(process.ctx.providers.push, {
    send: async (messages: readonly unknown[]) =>
      messages.map(() => ({ ok: true, ticket: { status: "ok", id: `t${sent}` }, provider: `provider-${sent++ % 2}` })),
    receipts: async (ids: readonly string[], carrier?: string | null) => {
      asked.set(carrier, [...ids].sort());
      return new Map();
    },
  });
  await house.queue(3, noted);
  await house.run("send", process);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check", process);
  expect(Object.fromEntries(asked)).toEqual({ "provider-0": ["t0", "t2"], "provider-1": ["t1"] });
  expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_not_ready_yet: 3 });
});

test("fields that others added to an entry stay with it through tickets, retries and callbacks", async () => {
  const [entry] = pushEntries(house.main.ctx, [newPush("sandbox-slow-a", noted)]);
  await acceptPushes(house.main.ctx, { uid: "group-x", items: [{ ...entry!, campaign: "spring" } as never] });
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await house.run("send");
  const retry = async () => {
    const [callback] = await house.takeCallbacks();
    expect(readFailure(callback!.kwargs.data_raw).attempt).toMatchObject({ campaign: "spring" });
    await house.runCallbacks([{ name: "runners.push.default_failure", kwargs: callback!.kwargs }]);
  };
  await retry();
  await house.clock.advance(15);
  await house.run("send");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  await retry();
  const [member] = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1");
  expect(JSON.parse(member!)).toMatchObject({ aud: "check", campaign: "spring", retry: 1 });
});

test("a caller that dies at any command and repeats its call queues each notification once", async () => {
  const pushes = [newPush("a", noted), newPush("b", noted)];
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: () => house.reset(),
    life: async (redis) => {
      const { ctx } = house.another({ redis });
      await enqueuePushes(ctx, pushes, { callUid: "call-d" });
      await acceptPushes(ctx, { uid: "group-d", items: pushEntries(ctx, pushes, "group-d") });
    },
    async afterlife() {
      const { ctx } = house.main;
      await enqueuePushes(ctx, pushes, { callUid: "call-d" });
      await acceptPushes(ctx, { uid: "group-d", items: pushEntries(ctx, pushes, "group-d") });
      expect(await house.length(keys.toSend())).toBe(4);
      expect(await house.counts(pushTicketStats)).toEqual({ queued: 4 });
      expect(await house.violations()).toEqual([]);
    },
  });
  expect(deaths).toBeGreaterThan(2);
}, 60_000);
