import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { checkProgressToken } from "../../infrastructure/jobs/service.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { keys as emailKeys } from "../email/keys.ts";
import { keys as pushKeys } from "../push/keys.ts";
import { sendTouches } from "./enqueue.ts";
import { touch } from "./index.ts";
import { log, send, sendTest } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import type { TestTouch } from "./test-touch.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

const PATH = "/api/1/admin/touch_points";
const PHONES = ["+14155550101", "+14155550102", "+14155550103", "+14155550104"];

let house: TouchHouse;
let ada: string;
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear();
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
  ada = await house.person("ada");
});

const text = { type: "string", example: "Ana" };
const sms = (uid: string, priority: number, body_format = uid, body_parameters: string[] = []) => ({
  priority,
  uid: `crl_tpsms_${uid}`,
  body_format,
  body_parameters,
});
const fields = (more: object = {}) => ({
  event_slug: "greeting",
  event_schema: { type: "object", properties: { name: text } },
  selection_strategy: "fixed",
  messages: { sms: [sms("b", 2), sms("a", 1, "Hi {name}", ["name"])] },
  ...more,
});
const call = (method: string, path: string, body?: object) =>
  house.call(method, `${PATH}${path}`, body ? { body } : {});
const outcome = (answer: { statusCode: number; body: string }) => [answer.statusCode, JSON.parse(answer.body).type];

test("a touch point is made, read, listed, searched, changed and removed", async () => {
  const made = await call("POST", "", fields());
  expect(made.statusCode).toBe(201);
  const point = made.json();
  expect(point).toMatchObject({ event_slug: "greeting", selection_strategy: "fixed", example: { name: "Ana" } });
  expect(point.uid).toMatch(/^crl_tpo_/);
  expect(point.messages_etag).toMatch(/^[0-9a-f]{128}$/);
  expect(point.messages.sms.map(({ priority }: { priority: number }) => priority)).toEqual([1, 2]);
  expect((await call("GET", `/${point.uid}`)).json()).toEqual(point);
  const slugs = (answer: { json(): { items: { event_slug: string }[]; next: string | null } }) => {
    const { items, next } = answer.json();
    return [items.map(({ event_slug }) => event_slug), next];
  };
  expect(slugs(await call("GET", ""))).toEqual([["daily_reminder", "greeting"], null]);
  expect(slugs(await call("GET", "?limit=1"))).toEqual([["daily_reminder"], "daily_reminder"]);
  expect(slugs(await call("GET", "?limit=1&after=daily_reminder"))).toEqual([["greeting"], "greeting"]);
  expect(slugs(await call("POST", "/search", { contains: "GREET" }))).toEqual([["greeting"], null]);
  const changed = await call("PATCH", `/${point.uid}`, {
    event_slug: "welcome",
    precondition: { messages_etag: point.messages_etag },
  });
  expect(changed.json()).toMatchObject({ uid: point.uid, event_slug: "welcome", messages: point.messages });
  expect((await call("DELETE", `/${point.uid}`)).statusCode).toBe(204);
  for (const method of ["GET", "DELETE"])
    expect(outcome(await call(method, `/${point.uid}`))).toEqual([404, "touch_point_not_found"]);
  expect(outcome(await call("PATCH", `/${point.uid}`, {}))).toEqual([404, "touch_point_not_found"]);
});

test("touch points that nobody could be told of are refused with what is wrong", async () => {
  const mail = (more: object) => ({
    email: [{ priority: 1, uid: "crl_tpem_a", subject_format: "x", template: "dailyReminder", ...more }],
  });
  const cases: readonly (readonly [object, readonly [number, string]])[] = [
    [{ event_schema: { type: "string" } }, [409, "schema_fails_validation"]],
    [{ event_schema: { type: "object", properties: { name: {} } } }, [409, "schema_fails_validation"]],
    [{ event_schema: { type: "object", properties: { name: { type: "string" } } } }, [409, "schema_fails_validation"]],
    [
      { event_schema: { type: "object", properties: { name: { type: "string", example: 7 } } } },
      [409, "schema_fails_validation"],
    ],
    [
      { event_schema: { type: "object", properties: { name: { type: "nonsense", example: 7 } } } },
      [409, "schema_fails_validation"],
    ],
    [{ messages: { sms: [sms("a", 1, "Hi {name}")] } }, [409, "messages_dont_match_schema"]],
    [{ messages: { sms: [sms("a", 1, "Hi", ["name"])] } }, [409, "messages_dont_match_schema"]],
    [{ messages: { sms: [sms("a", 1, "Hi {age}", ["age"])] } }, [409, "messages_dont_match_schema"]],
    [{ messages: { sms: [sms("a", 1, "Hi {")] } }, [409, "messages_dont_match_schema"]],
    [{ messages: { sms: [sms("a", 1), sms("a", 2)] } }, [409, "messages_dont_match_schema"]],
    [
      { messages: mail({ template_parameters_substituted: [{ key: ["x"], format: "{age}", parameters: ["age"] }] }) },
      [409, "messages_dont_match_schema"],
    ],
    [{ messages: { sms: [{ ...sms("a", 1), uid: "nonsense" }] } }, [422, "invalid_request"]],
    [{ event_slug: "a" }, [422, "invalid_request"]],
    [{ event_slug: "ends_" }, [422, "invalid_request"]],
    [{ event_slug: `a${"b".repeat(255)}` }, [422, "invalid_request"]],
    [{ selection_strategy: "whatever" }, [422, "invalid_request"]],
  ];
  for (const [more, expected] of cases)
    expect([more, outcome(await call("POST", "", fields(more)))]).toEqual([more, expected]);
  const { uid, messages_etag } = (await call("POST", "", fields())).json();
  expect(outcome(await call("POST", "", fields()))).toEqual([409, "event_slug_exists"]);
  expect(outcome(await call("PATCH", `/${uid}`, { event_slug: "daily_reminder" }))).toEqual([409, "event_slug_exists"]);
  expect(outcome(await call("PATCH", `/${uid}`, { event_schema: { type: "object", properties: {} } }))).toEqual([
    409,
    "messages_dont_match_schema",
  ]);
  const change = { messages: { sms: [sms("c", 1)] }, precondition: { messages_etag } };
  expect((await call("PATCH", `/${uid}`, change)).statusCode).toBe(200);
  expect(outcome(await call("PATCH", `/${uid}`, change))).toEqual([412, "messages_changed"]);
});

test("a new strategy begins anew with everybody, and new words do not", async () => {
  const { uid } = (await call("POST", "", fields())).json();
  await house.reachable("bob", { phones: [PHONES[0]!] });
  await sendTouches(house.ctx, [{ userSub: "bob", slug: "greeting", channel: "sms", parameters: { name: "Bob" } }]);
  await house.run(send);
  await house.run(log);
  const states = () => house.query<{ version: number }>("select version from user_touch_point_states");
  expect(await states()).toHaveLength(1);
  await call("PATCH", `/${uid}`, { messages: { sms: [sms("c", 1)] }, selection_strategy: "fixed" });
  expect(await states()).toHaveLength(1);
  await call("PATCH", `/${uid}`, { selection_strategy: "ordered_resettable" });
  expect(await states()).toEqual([]);
  // A state that was still on its way finds its touch point; one of a touch point that is gone does not.
  expect((await call("DELETE", `/${uid}`)).statusCode).toBe(204);
  const touches = (await house.call("GET", "/api/1/admin/users/bob/touches")).json();
  expect(touches.items.every(({ event_slug }: { event_slug: string | null }) => event_slug === null)).toBe(true);
});

test("an administrator gets a test at up to three of their own addresses, and nothing is remembered of it", async () => {
  const mine = await house.reachable("boss", {
    phones: PHONES,
    emails: ["boss@example.com"],
    tokens: ["ExponentPushToken[boss-token-1]"],
  });
  await house.query("update users set role = 'admin' where sub = 'boss'");
  const { uid } = (await call("POST", "", fields())).json();
  const tryOut = (body: object, path = uid, token = mine) =>
    house.call("POST", `${PATH}/${path}/test`, { token, body });
  const first = await tryOut({ channel: "sms", event_parameters: { name: "Boss" } });
  expect([first.statusCode, first.json().destinations]).toEqual([202, PHONES.slice(0, 3)]);
  await tryOut({ channel: "sms", event_parameters: { name: "Boss" }, message_uid: "crl_tpsms_b" });
  // What they queue is looked at here instead of being sent.
  const sending = ["runners.sms.send", "runners.emails.send", "runners.push.send"];
  expect(await house.workWithout(...sending)).toEqual([sendTest.name, sendTest.name]);
  const texts = await house.texts();
  expect(texts.map(({ body }) => body)).toEqual(["Hi Boss", "Hi Boss", "Hi Boss", "b", "b", "b"]);
  expect(texts.map(({ phone_number }) => phone_number).slice(0, 3)).toEqual(PHONES.slice(0, 3));
  const all = { name: "B", time_of_day: "morning", url: "https://a.b", unsubscribe_url: "https://a.b" };
  for (const channel of ["email", "push"])
    expect((await tryOut({ channel, event_parameters: all }, "crl_tpo_daily_reminder")).statusCode).toBe(202);
  await house.workWithout(...sending);
  expect([await house.length(emailKeys.toSend()), await house.length(pushKeys.toSend())]).toEqual([1, 1]);
  expect(await house.length(keys.toLog())).toBe(0);
  expect(outcome(await tryOut({ channel: "push" }))).toEqual([409, "parameters_mismatch"]);
  expect(outcome(await tryOut({ channel: "sms", event_parameters: { name: 7 } }))).toEqual([
    409,
    "parameters_mismatch",
  ]);
  expect(outcome(await tryOut({ channel: "sms", message_uid: "crl_tpsms_none" }))).toEqual([
    409,
    "parameters_mismatch",
  ]);
  expect(outcome(await tryOut({ channel: "sms" }, "nobody"))).toEqual([404, "touch_point_not_found"]);
  await house.query("update user_phone_numbers set receives_notifications = false");
  const none = await tryOut({ channel: "sms", event_parameters: { name: "Boss" } });
  expect(outcome(none)).toEqual([404, "no_destination"]);
});

test("whoever sends themselves a message can watch it being queued, once even if the job runs twice", async () => {
  const mine = await house.reachable("boss", {
    phones: PHONES.slice(0, 1),
    tokens: ["ExponentPushToken[boss-token-1]"],
  });
  await house.query("update users set role = 'admin' where sub = 'boss'");
  const { uid } = (await call("POST", "", fields())).json();
  const body = { channel: "sms", event_parameters: { name: "Boss" } };
  const { job_uid, progress_token } = (await house.call("POST", `${PATH}/${uid}/test`, { token: mine, body })).json();
  expect(await checkProgressToken(house.ctx, job_uid, progress_token)).toBeGreaterThan(house.ctx.clock.now());
  const told = async () => (await house.ctx.jobs.progress.read(job_uid))?.events.map(({ message }) => message);
  expect(await told()).toEqual(["waiting for a worker"]);
  const raw = await house.ctx.redis.commands.lpop(jobKeys.hot());
  const { kwargs, ...entry } = JSON.parse(raw!) as { kwargs: TestTouch; job_uid: string };
  const said: string[] = [];
  const run = (wish: TestTouch) =>
    sendTest.run!(
      Object.create(house.ctx, {
        job: { value: { jobUid: entry.job_uid } },
        progress: { value: async (message: string) => void said.push(message) },
      }),
      wish,
    );
  await run(kwargs);
  await run(kwargs);
  const [text, ...others] = await house.texts();
  expect([said, others]).toEqual([[`queued as ${text!.uid}`, "queued before"], []]);
  // Tests step aside when their channel has much to do.
  await house.ctx.redis.commands.rpush(pushKeys.toSend(), ...Array.from({ length: 1000 }, () => "x"));
  const event_parameters = { name: "B", time_of_day: "morning", url: "https://a.b", unsubscribe_url: "https://a.b" };
  const late = {
    touch_point_uid: "crl_tpo_daily_reminder",
    user_sub: "boss",
    channel: "push" as const,
    event_parameters,
  };
  await expect(run(late)).rejects.toMatchObject({ code: "touch_backpressure" });
});

test("only administrators reach the routes of touches", async () => {
  for (const { method, path, access } of touch.routes) {
    expect([path, access]).toEqual([path, "admin"]);
    const url = path.replace("{uid}", "crl_tch_x").replace("{sub}", "ada");
    for (const [token, status] of [
      ["", 401],
      [ada, 403],
    ] as const) {
      const answer = await house.call(method, url, { token, ...(method === "GET" ? {} : { body: {} }) });
      expect([path, answer.statusCode]).toEqual([path, status]);
    }
  }
});

test("queues and runs can be looked at, and a run that never was is not found", async () => {
  const info = async (path: string) => (await house.call("GET", `/api/1/admin/touch/${path}`)).json();
  for (const job of ["last_send_job", "last_log_job", "last_stale_detection_job"])
    expect([job, (await info(job)).type]).toEqual([job, "touch_run_not_finished"]);
  await house.reachable("bob", { phones: PHONES.slice(0, 2) });
  await call("POST", "", fields());
  const at = house.ctx.clock.now();
  const failureCallback = { name: "runners.touch.abandon_links", kwargs: { codes: ["none"] } };
  await sendTouches(house.ctx, [
    { userSub: "bob", slug: "greeting", channel: "sms", parameters: { name: "Bob" }, failureCallback },
    { userSub: "bob", slug: "greeting", channel: "email", parameters: { name: "Bob" } },
  ]);
  expect(await info("send_queue_info")).toEqual({ length: 2, oldest_queued_at: at, purgatory_length: 0 });
  await house.run(send);
  expect(await info("last_send_job")).toMatchObject({
    started_at: at,
    finished_at: at,
    running_time: 0,
    attempted: 2,
    touch_points: 1,
    attempted_sms: 1,
    reachable_sms: 1,
    unreachable_sms: 0,
    attempted_push: 0,
    reachable_push: 0,
    unreachable_push: 0,
    attempted_email: 1,
    reachable_email: 0,
    unreachable_email: 1,
    stale: 0,
    stop_reason: "list_exhausted",
  });
  expect(await info("pending_sorted_set_info")).toEqual({ length: 1, oldest_score: at });
  const rows = await info("log_queue_info");
  expect([rows.oldest_queued_at, rows.length]).toEqual([at, 5]);
  const small = house.process({ settings: [[settings.logRows, 2]] });
  await house.run(log, small);
  expect(await info("last_log_job")).toMatchObject({
    inserts: 5,
    updates: 0,
    full_batch_inserts: 2,
    partial_batch_inserts: 1,
    accepted_inserts: 5,
    failed_inserts: 0,
    full_batch_updates: 0,
    partial_batch_updates: 0,
    accepted_updates: 0,
    failed_updates: 0,
    stop_reason: "list_exhausted",
  });
});

test("a message is previewed before it is saved, and told what keeps it from being made", async () => {
  const preview = (channel: string, message: object, event_parameters: object = { name: "<b>Ana</b>" }) =>
    call("POST", "/preview", { channel, message, event_parameters });
  const message = sms("a", 1, "Hi {name}", ["name"]);
  expect((await preview("sms", message)).json()).toEqual({ body: "Hi <b>Ana</b>" });
  const mail = {
    priority: 1,
    uid: "crl_tpem_a",
    subject_format: "For {name}",
    template: "announcement",
    template_parameters_fixed: { title: "News" },
    template_parameters_substituted: [{ key: ["body"], format: "Dear {name}", parameters: ["name"] }],
  };
  expect((await preview("email", mail)).json()).toEqual({
    subject: "For <b>Ana</b>",
    template: "announcement",
    template_parameters: { title: "News", body: "Dear <b>Ana</b>" },
  });
  expect(outcome(await preview("push", message))).toEqual([409, "parameters_mismatch"]);
  expect(outcome(await preview("sms", message, {}))).toEqual([409, "parameters_mismatch"]);
  expect(outcome(await preview("sms", sms("a", 1, "a { b")))).toEqual([409, "parameters_mismatch"]);
  expect((await preview("sms", { body_format: 1 })).statusCode).toBe(422);
});
