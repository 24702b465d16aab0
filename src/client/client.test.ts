import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, expectTypeOf, test } from "vitest";
import { openRooms, type RoomsHouse } from "../../test/harness/rooms.ts";
import { reminders } from "../messaging/reminders/index.ts";
import { assignTime, send as sendDue } from "../messaging/reminders/jobs.ts";
import { log, send as sendQueued } from "../messaging/touch/jobs.ts";
import { rooms } from "../messaging/touch/touch.fixture.ts";
import { httpSettings, openApiDocument } from "../surfaces/http/index.ts";
import { type Answer, type Body, type Carillon, CarillonApiError, createCarillon, type Touch } from "./index.ts";

/** Wednesday, 2026-11-18 00:00 in Los Angeles. */
const BEGINNING = 1_794_988_800;
const ORIGIN = "https://app.example.com";
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0";

let house: RoomsHouse;
let baseUrl = "";
let carillon: Carillon;
beforeAll(async () => {
  house = await openRooms({
    rooms: [...rooms, reminders],
    start: BEGINNING,
    settings: [[httpSettings.allowedOrigins, [ORIGIN]]],
  });
  baseUrl = await house.app.listen({ host: "127.0.0.1", port: 0 });
  carillon = createCarillon({ baseUrl, token: house.admin });
});
afterAll(() => house.close());

const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable("the call was answered"),
    (error: unknown) => error as CarillonApiError,
  );

/** A user with a phone; answers Carillon as that person calls it. */
async function person(sub: string, phone_number: string): Promise<Carillon> {
  await carillon.post("/api/1/admin/users", { body: { sub, given_name: sub, timezone: "America/Los_Angeles" } });
  const { phones } = await carillon.post("/api/1/admin/users/{sub}/contact_methods", {
    path: { sub },
    body: { phones: [{ phone_number, verified: true, receives_notifications: true }] },
  });
  expect(phones).toMatchObject([{ value: phone_number, verified: true, suppressed: false }]);
  return carillon.as(
    async () =>
      (await carillon.post("/api/1/admin/users/{sub}/access_token", { path: { sub }, body: {} })).access_token,
  );
}

test("an application makes a person and a touch point, sends a touch with a link, and follows it to the click", async () => {
  const ada = await person("ada", "+14155550132");
  expect((await ada.get("/api/1/users/me")).given_name).toBe("ada");
  const point = await carillon.post("/api/1/admin/touch_points", {
    body: {
      event_slug: "order_shipped",
      event_schema: {
        type: "object",
        properties: { what: { type: "string", example: "tea" }, url: { type: "string", example: "https://x.io/l/1" } },
        required: ["what", "url"],
      },
      selection_strategy: "fixed",
      messages: {
        sms: [
          {
            priority: 1,
            uid: "crl_tpsms_shipped",
            body_format: "Your {what} is on its way: {url}",
            body_parameters: ["what", "url"],
          },
        ],
      },
    },
  });
  expect(point.messages.sms[0]!.uid).toBe("crl_tpsms_shipped");

  const touch: Touch = {
    user_sub: "ada",
    touch_point_event_slug: "order_shipped",
    channels: ["sms"],
    event_parameters: { what: "tea" },
    links: [{ parameter: "url" }],
  };
  const sent = await carillon.sendTouch(touch, { idempotencyKey: "order-17-shipped" });
  expect(sent).toMatchObject([{ user_sub: "ada", channel: "sms", codes: [expect.any(String)] }]);
  expect(await carillon.sendTouch(touch, { idempotencyKey: "order-17-shipped" })).toEqual(sent);
  const reused = await errorOf(carillon.sendTouch({ ...touch, links: [] }, { idempotencyKey: "order-17-shipped" }));
  expect(reused).toMatchObject({ name: "CarillonApiError" });

  const [{ uid, codes }] = sent as [(typeof sent)[number]];
  const timeline = () => carillon.get("/api/1/admin/touches/{uid}", { path: { uid } });
  expect(await timeline()).toMatchObject({ uid, state: "queued" });
  await house.run(sendQueued);
  await carillon.post("/api/1/notifications/complete", {
    body: { code: codes[0]! },
    headers: { "user-agent": BROWSER },
  });
  const { state, moments } = await timeline();
  expect(state).toBe("dispatched");
  expect(moments.map(({ step }) => step)).toEqual(expect.arrayContaining(["queued", "dispatched", "clicked"]));
  const many = await carillon.sendTouches([touch, { ...touch, event_parameters: { what: "cake" } }]);
  expect(new Set(many.map((each) => each.uid)).size).toBe(2);
});

test("a person chooses their hours and sees the next two weeks, through the client", async () => {
  const bob = await person("bob", "+14155550133");
  const eight = 8 * 3_600;
  await bob.post("/api/1/users/me/attributes/notification_time", {
    body: {
      channel: "sms",
      days_of_week: ["Monday", "Wednesday"],
      time_range: { type: "explicit", start: eight, end: eight + 600 },
      timezone: "America/Los_Angeles",
      timezone_technique: "browser",
    },
  });
  const { sms } = await bob.get("/api/1/users/me/daily_reminder_settings");
  expect(sms).toEqual({ start: eight, end: eight + 600, days: ["Monday", "Wednesday"], is_real: true });
  const { timezone, items } = await bob.get("/api/1/users/me/daily_reminders/next");
  expect([timezone, items.length, items[0]?.weekday, items[0]?.earliest_local]).toEqual([
    "America/Los_Angeles",
    4,
    "Wednesday",
    "08:00",
  ]);

  await house.base.clock.advance(BEGINNING + eight - 60 - house.ctx.clock.now());
  await house.run(assignTime);
  await house.base.clock.advance(700);
  await house.run(sendDue);
  await house.run(sendQueued);
  await house.run(log);
  const { items: reached } = await carillon.get("/api/1/admin/users/{sub}/touch_debug_log", {
    path: { sub: "bob" },
    query: { limit: 10 },
  });
  expect(JSON.stringify(reached)).toContain("daily_reminder");
  const registered = await bob.get("/api/1/users/me/daily_reminders");
  expect(await bob.delete("/api/1/users/me/daily_reminders", { body: { uid: registered.sms!.uid } })).toBeUndefined();
  expect((await bob.get("/api/1/users/me/daily_reminders")).sms).toBeNull();
});

test("a refusal is thrown with its code, its status, its detail and the id it was logged under", async () => {
  const unknown = await errorOf(carillon.get("/api/1/admin/users/{sub}", { path: { sub: "nobody" } }));
  expect(unknown).toBeInstanceOf(CarillonApiError);
  expect(unknown).toMatchObject({ status: 404, type: "user_not_found", retryAfter: undefined });
  expect(unknown.requestId).toMatch(/^crl_req_/);
  const misfit = await errorOf(
    carillon.post("/api/1/admin/users", { body: { sub: "carol", timezone: "Mars/Olympus" } }),
  );
  expect(misfit).toMatchObject({ status: 422, type: "invalid_request", detail: [{ in: "body", path: "timezone" }] });
  expect(misfit.message).toContain("timezone");
  expect(await errorOf(createCarillon({ baseUrl }).get("/api/1/users/me"))).toMatchObject({ status: 401 });
});

test("values are written into addresses so that they reach the route that was meant", async () => {
  const sub = "d@v+e|x";
  await carillon.post("/api/1/admin/users", { body: { sub } });
  const slashed = createCarillon({ baseUrl: `${baseUrl}/`, token: () => Promise.resolve(house.admin) });
  expect((await slashed.get("/api/1/admin/users/{sub}", { path: { sub } })).sub).toBe(sub);
  const { items } = await slashed.get("/api/1/admin/users", { query: { role: "user", limit: 1, after: undefined } });
  expect(items).toHaveLength(1);
  for (const climbing of ["", ".", ".."])
    await expect(carillon.delete("/api/1/admin/users/{sub}", { path: { sub: climbing } })).rejects.toThrow(TypeError);
  expect(await carillon.get("/l/{code}", { path: { code: "unknown" } })).toContain("<html");
});

test("the description without a server is the one that a server gives", async () => {
  const served = (await (await fetch(`${baseUrl}/api/1/openapi.json`)).json()) as { paths: Record<string, unknown> };
  const { paths } = await openApiDocument([...rooms, reminders]);
  expect(Object.keys(paths).length).toBeGreaterThan(50);
  for (const [path, operations] of Object.entries(paths)) expect(served.paths[path]).toEqual(operations);
});

test("a page of an allowed origin may send the headers of the client, and read those that errors are made of", async () => {
  const { headers } = await fetch(`${baseUrl}/api/1/admin/touches`, {
    method: "OPTIONS",
    headers: { origin: ORIGIN, "access-control-request-method": "POST" },
  });
  const sent = headers.get("access-control-allow-headers")?.split(", ");
  expect(sent).toEqual(expect.arrayContaining(["authorization", "content-type", "idempotency-key"]));
  const shown = headers.get("access-control-expose-headers")?.split(", ");
  expect(shown).toEqual(expect.arrayContaining(["x-request-id", "retry-after"]));
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that answers as told, one answer after the other; keeps what it was sent. */
async function answering(...answers: RequestListener[]) {
  const requests: { method: string; key: string | undefined; token: string | undefined }[] = [];
  const waits: number[] = [];
  const server = createServer((request, response) => {
    const { "idempotency-key": key, authorization } = request.headers;
    requests.push({ method: request.method!, key: key as string | undefined, token: authorization });
    request.resume().on("end", () => (answers.shift() ?? answers.at(-1))!(request, response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = createCarillon({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    retries: 2,
    wait: async (seconds) => void waits.push(seconds),
  });
  return { client, requests, waits };
}
const refusing =
  (status: number, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    const failure = { type: "busy", message: "Too much to do.", request_id: "crl_req_1" };
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(failure));
  };
const accepting: RequestListener = (_request, response) =>
  response.writeHead(200, { "content-type": "application/json" }).end('{"touches":[]}');
const touch: Touch = { user_sub: "ada", touch_point_event_slug: "order_shipped", channels: ["sms"] };

test("a touch is sent again after the time that Carillon asks for, under the same key", async () => {
  const { client, requests, waits } = await answering(
    refusing(503, { "retry-after": "15" }),
    refusing(429, { "retry-after": "2" }),
    accepting,
  );
  expect(await client.sendTouch(touch)).toEqual([]);
  expect(waits).toEqual([15, 2]);
  expect(requests).toHaveLength(3);
  expect(requests[0]!.key).toMatch(/^[0-9a-f-]{36}$/);
  expect(new Set(requests.map(({ key }) => key)).size).toBe(1);
});

test("nothing else is repeated, and nothing at all unless asked", async () => {
  const soon = { "retry-after": "1" };
  const tries = async (call: (client: Carillon) => Promise<unknown>, ...answers: RequestListener[]) => {
    const { client, requests } = await answering(...answers);
    const error = await errorOf(call(client));
    return [error.status, requests.length];
  };
  const read = (client: Carillon) => client.get("/api/1/users/me");
  expect(await tries(read, refusing(503))).toEqual([503, 1]);
  expect(await tries(read, refusing(500, soon))).toEqual([500, 1]);
  expect(await tries(read, refusing(503, { "retry-after": "3600" }))).toEqual([503, 1]);
  expect(await tries(read, refusing(503, soon), refusing(503, soon), refusing(503, soon))).toEqual([503, 3]);
  const unkeyed = (client: Carillon) => client.post("/api/1/admin/touches", { body: touch });
  expect(await tries(unkeyed, refusing(503, soon))).toEqual([503, 1]);
  const impatient = (client: Carillon) => client.sendTouch(touch, { retries: 0 });
  expect(await tries(impatient, refusing(503, soon))).toEqual([503, 1]);
});

test("a fresh token is asked for before every try", async () => {
  const { client, requests } = await answering(refusing(429, { "retry-after": "1" }), accepting);
  let count = 0;
  await client.as(() => `token-${++count}`).sendTouch(touch);
  expect(requests.map(({ token }) => token)).toEqual(["Bearer token-1", "Bearer token-2"]);
});

test("what something in between answers becomes an error too", async () => {
  const { client } = await answering((_request, response) =>
    response
      .writeHead(502, {
        "content-type": "text/html",
        date: "Wed, 18 Nov 2026 08:00:00 GMT",
        "retry-after": "Wed, 18 Nov 2026 08:00:30 GMT",
      })
      .end("<h1>Bad gateway</h1>"),
  );
  expect(await errorOf(client.get("/api/1/users/me"))).toMatchObject({
    status: 502,
    type: "http_502",
    message: "The server answered 502.",
    requestId: undefined,
    retryAfter: 30,
  });
});

test("whoever loses interest does not wait for the next try", async () => {
  const stop = new AbortController();
  const refused = async () => {
    queueMicrotask(() => stop.abort(new Error("no longer wanted")));
    return new Response("{}", { status: 429, headers: { "retry-after": "30" } });
  };
  const patient = createCarillon({ baseUrl, retries: 1, fetch: refused });
  await expect(patient.get("/api/1/users/me", { signal: stop.signal })).rejects.toThrow("no longer wanted");
});

test("a wrong path, a missing parameter and a body that does not fit do not compile", () => {
  const uncalled = (client: Carillon) => [
    // @ts-expect-error: there is no such path
    client.get("/api/1/users/you"),
    // @ts-expect-error: nothing is posted there
    client.post("/api/1/users/me"),
    // @ts-expect-error: the sub is missing
    client.get("/api/1/admin/users/{sub}"),
    // @ts-expect-error: a sub is a text
    client.get("/api/1/admin/users/{sub}", { path: { sub: 7 } }),
    // @ts-expect-error: there is no such role
    client.get("/api/1/admin/users", { query: { role: "king" } }),
    // @ts-expect-error: the body is missing
    client.post("/api/1/admin/touches"),
    // @ts-expect-error: pigeons are no channel
    client.sendTouch({ user_sub: "ada", touch_point_event_slug: "order_shipped", channels: ["pigeon"] }),
    // @ts-expect-error: no field has this name
    client.post("/api/1/admin/users", { body: { name: "Ada" } }),
  ];
  expectTypeOf(uncalled).toBeFunction();
  expectTypeOf<Answer<"get", "/api/1/users/me">["timezone"]>().toEqualTypeOf<string | null>();
  expectTypeOf<Body<"post", "/api/1/admin/touches">["user_sub"]>().toEqualTypeOf<string>();
  expectTypeOf(carillon.get<"/api/1/users/me">).returns.resolves.toHaveProperty("given_name");
});
