import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { answersText } from "../../providers/http-server.fixture.ts";
import { emitEvents } from "./service.ts";
import { openWebhooks, verified, type WebhooksHouse } from "./webhooks.fixture.ts";

let house: WebhooksHouse;
beforeAll(async () => {
  house = await openWebhooks();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const ROOT = "/api/1/admin/webhooks";
const tell = (...names: readonly string[]) =>
  emitEvents(
    house.ctx,
    names.map((key) => ({ type: "link.clicked" as const, key, at: 1_790_000_000, data: { click_uid: key } })),
  );

test("only addresses that are safe to sign for become endpoints", async () => {
  const make = async (url: string) =>
    (await house.call("POST", ROOT, { body: { url, types: ["link.clicked"] } })).statusCode;
  for (const url of [
    "http://example.com/hook",
    "http://127.0.0.1.example.com/hook",
    "http://10.0.0.1/hook",
    "ftp://example.com",
    "https://ada:secret@example.com/hook",
    "https://example.com/hook#part",
    "example.com",
    `https://example.com/${"a".repeat(2_048)}`,
  ])
    expect([url, await make(url)]).toEqual([url, 422]);
  for (const url of ["https://example.com/hook?from=carillon", "http://localhost:3000/", "http://[::1]:3000/"])
    expect([url, await make(url)]).toEqual([url, 201]);
  for (const types of [[], ["touch.lost"], ["webhook.test"]])
    expect((await house.call("POST", ROOT, { body: { url: "https://example.com", types } })).statusCode).toBe(422);
  const user = await house.person("ada");
  for (const token of ["", user]) expect((await house.call("GET", ROOT, { token })).statusCode).not.toBe(200);
});

test("an endpoint is read, changed and removed, and its secret is shown at its making only", async () => {
  const { secret, uid, ...made } = await house.endpoint({ types: ["link.clicked"], description: "the shop" });
  expect(made).toEqual({
    url: `${house.receiver.url}/hook`,
    description: "the shop",
    types: ["link.clicked"],
    enabled: true,
    disabled_reason: null,
    disabled_at: null,
    failing_since: null,
    previous_secret_until: null,
    created_at: house.ctx.clock.now(),
  });
  const path = `${ROOT}/${uid}`;
  const read = await house.call("GET", path);
  const listed = await house.call("GET", ROOT);
  expect(read.json()).toEqual({ uid, ...made });
  expect(listed.json()).toEqual({ items: [{ uid, ...made }] });
  const changed = await house.call("PATCH", path, {
    body: { types: ["touch.failed"], description: "", enabled: false, url: "https://example.com/" },
  });
  expect(changed.json()).toMatchObject({
    url: "https://example.com/",
    types: ["touch.failed"],
    description: "",
    enabled: false,
    disabled_reason: "admin",
  });
  const again = await house.call("PATCH", path, { body: { description: "off" } });
  expect(again.json()).toMatchObject({ enabled: false, description: "off", types: ["touch.failed"] });
  // The secret stands in no other answer, in no row and in no line of the administrators' journal.
  const rows = await house.query("select * from webhook_endpoints");
  const journal = await house.query("select * from admin_audit_log");
  for (const place of [read.body, listed.body, changed.body, JSON.stringify(rows), JSON.stringify(journal)])
    expect(place).not.toContain(secret.slice("whsec_".length));
  expect((await house.call("DELETE", path)).statusCode).toBe(204);
  for (const method of ["GET", "DELETE"]) expect((await house.call(method, path)).statusCode).toBe(404);
  for (const [at, body] of [
    ["", {}],
    ["/rotate_secret", {}],
    ["/test", undefined],
  ] as const)
    expect([at, (await house.call(at === "" ? "PATCH" : "POST", path + at, { body })).statusCode]).toEqual([at, 404]);
});

test("there are at most fifty endpoints", async () => {
  const types = "'{link.clicked}'";
  await house.query(`insert into webhook_endpoints (uid, url, description, types, secret_number, created_at)
    select 'crl_whe_' || number, 'https://example.com', '', ${types}, 1, now() from generate_series(1, 49) as number`);
  await house.endpoint();
  const body = { url: "https://example.com", types: ["link.clicked"] };
  const refused = await house.call("POST", ROOT, { body });
  expect([refused.statusCode, refused.json().type]).toEqual([409, "too_many_webhook_endpoints"]);
});

test("while a secret is rotated both are signed for, and an old one that leaked ends at once", async () => {
  const { uid, secret: first } = await house.endpoint();
  const rotate = async (body: object) => (await house.call("POST", `${ROOT}/${uid}/rotate_secret`, { body })).json();
  const { secret: second, previous_secret_until } = await rotate({ keep_previous_for: 3_600 });
  expect(second).not.toBe(first);
  expect(previous_secret_until).toBe(house.ctx.clock.now() + 3_600);
  const send = async (name: string) => {
    await tell(name);
    await house.work();
    return house.receiver.requests.at(-1)!;
  };
  const now = () => house.ctx.clock.now();
  const during = await send("during");
  expect(String(during.headers["webhook-signature"]).split(" ")).toHaveLength(2);
  for (const secret of [first, second]) verified(during, secret, now());
  await house.base.clock.advance(3_600);
  const after = await send("after");
  verified(after, second, now());
  expect(() => verified(after, first, now())).toThrow("no signature fits");
  const { secret: third } = await rotate({ keep_previous_for: 0 });
  const last = await send("last");
  verified(last, third, now());
  expect(() => verified(last, second, now())).toThrow("no signature fits");
});

test("a test event reaches an endpoint whatever it asked for", async () => {
  const { uid, secret } = await house.endpoint({ types: ["touch.failed"] });
  const sent = await house.call("POST", `${ROOT}/${uid}/test`);
  expect(sent.statusCode).toBe(202);
  await house.work();
  const [request] = house.receiver.requests;
  expect(request!.headers["webhook-id"]).toBe(sent.json().uid);
  expect(verified(request!, secret, house.ctx.clock.now())).toMatchObject({
    type: "webhook.test",
    data: { endpoint_uid: uid },
  });
});

test("messages are listed page by page, filtered, read with what they say, and sent again", async () => {
  const { uid } = await house.endpoint();
  house.receiver.once.push(answersText(500, ""));
  await tell("a");
  await house.work();
  await tell("b", "c", "d");
  await house.work();
  const path = `${ROOT}/${uid}/messages`;
  const seen: string[] = [];
  let next: number | null = null as number | null;
  do {
    const answer = await house.call("GET", `${path}?limit=2${next === null ? "" : `&before=${next}`}`);
    const page = answer.json() as { items: { uid: string }[]; next: number | null };
    seen.push(...page.items.map((item) => item.uid));
    next = page.next;
  } while (next !== null);
  expect(seen).toHaveLength(4);
  expect(new Set(seen).size).toBe(4);
  const [pending, ...others] = await house.messages(uid, "?status=pending&type=link.clicked");
  expect([pending!.uid, others]).toEqual([seen.at(-1), []]);
  expect(pending).toMatchObject({ last_status: 500, next_attempt_at: house.ctx.clock.now() + 5 });
  expect(await house.messages(uid, "?type=touch.failed")).toEqual([]);
  expect((await house.call("GET", `${path}?limit=101`)).statusCode).toBe(422);

  const message = `/api/1/admin/webhook_messages/${seen[0]}`;
  expect((await house.call("GET", message)).json()).toMatchObject({
    uid: seen[0],
    endpoint_uid: uid,
    status: "delivered",
    payload: { type: "link.clicked", data: { click_uid: "d" } },
  });
  const before = house.receiver.requests.length;
  expect((await house.call("POST", `${message}/resend`)).statusCode).toBe(202);
  await house.work();
  expect(house.receiver.requests).toHaveLength(before + 1);
  expect(house.receiver.requests.at(-1)!.headers["webhook-id"]).toBe(seen[0]);
  for (const [method, at] of [
    ["GET", ""],
    ["POST", "/resend"],
  ] as const)
    expect((await house.call(method, `/api/1/admin/webhook_messages/crl_whm_nobody${at}`)).statusCode).toBe(404);
});
