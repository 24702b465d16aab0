import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openVirtualFleet, type VirtualFleet } from "../../../test/harness/virtual-fleet.ts";
import type { Context } from "../../jobs/context.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

const SECRET = "correct horse battery staple";

let fleet: VirtualFleet;
let ctx: Context & { readonly alerts: AlertRecorder };

beforeAll(async () => {
  fleet = await openVirtualFleet();
});
afterAll(() => fleet.close());
beforeEach(async () => {
  await fleet.reset();
  ctx = fleet.machine({
    config: fleet.world.config.with(
      [settings.secret, SECRET.replaceAll(" ", "-")],
      [settings.expectedInstances, { backend: 1, jobs: 2 }],
      [settings.units, { "landing-page": "build" }],
    ),
  }).ctx;
});

/** Calls a route as the server would, with its schemas applied. */
async function call(
  path: string,
  given: { body?: unknown; params?: unknown; secret?: string; address?: string; context?: Context } = {},
) {
  const route = routes.find((each) => each.path === path)!;
  const parsed = (name: "body" | "params") => route.schemas?.[name]?.parse(given[name]);
  const request = {
    body: parsed("body"),
    params: parsed("params"),
    query: undefined,
    headers: given.secret === undefined ? {} : { authorization: `Bearer ${given.secret}` },
    caller: { sub: undefined, role: "anonymous", address: given.address ?? "192.0.2.1" },
    id: "request",
    raw: undefined,
  };
  return route.handle(given.context ?? ctx, request as never);
}

const UPDATE = "/api/1/continuous_deployment/update";
const secret = SECRET.replaceAll(" ", "-");

describe("POST /api/1/continuous_deployment/update", () => {
  it("publishes the commit to every instance of the unit and counts them", async () => {
    const heard: string[] = [];
    await ctx.subscriber.subscribe(keys.updates({ repo: "backend" }), (raw) => heard.push(raw.toString()));
    const reply = await call(UPDATE, { body: { repo: "backend", sha: "abcdef1" }, secret });
    expect(reply).toMatchObject({ status: 202, body: { subscribers: 1, expected: 1 } });
    await call(UPDATE, { body: { repo: "backend" }, secret });
    await fleet.pass(1);
    expect(heard.map((message) => JSON.parse(message))).toEqual([
      { sha: "abcdef1", requested_at: expect.any(Number) },
      1,
    ]);
    expect(ctx.alerts.recorded).toEqual([]);
  });

  it("warns when other than the expected number of instances heard it", async () => {
    expect((await call(UPDATE, { body: { repo: "jobs" }, secret })).body).toEqual({ subscribers: 0, expected: 2 });
    expect(ctx.alerts.identifiers()).toEqual(["updates:unexpected_subscribers"]);
    expect((await call(UPDATE, { body: { repo: "websocket" }, secret })).body).toEqual({ subscribers: 0 });
  });

  it("refuses a missing or wrong secret, and an address after ten tries a minute, right or wrong", async () => {
    const body = { repo: "backend" };
    await expect(call(UPDATE, { body })).rejects.toMatchObject({ status: 401 });
    for (let i = 0; i < 9; i++)
      await expect(call(UPDATE, { body, secret: `${secret}${i}` })).rejects.toMatchObject({ status: 401 });
    await expect(call(UPDATE, { body, secret: "wrong" })).rejects.toMatchObject({ status: 429 });
    await expect(call(UPDATE, { body, secret })).rejects.toMatchObject({ status: 429, retryAfter: expect.any(Number) });
    expect(await call(UPDATE, { body, secret, address: "2001:db8::1" })).toMatchObject({ status: 202 });
    await fleet.world.clock.advance(60);
    expect(await call(UPDATE, { body, secret })).toMatchObject({ status: 202 });
  });

  it("is not there while no secret is set", async () => {
    const bare = fleet.machine().ctx;
    await expect(call(UPDATE, { body: { repo: "backend" }, secret: "", context: bare })).rejects.toMatchObject({
      status: 404,
    });
  });

  it("knows the built-in units and the configured ones, and no others", async () => {
    expect(await call(UPDATE, { body: { repo: "landing-page" }, secret })).toMatchObject({ status: 202 });
    for (const repo of ["toString", "unknown"])
      await expect(call(UPDATE, { body: { repo }, secret })).rejects.toMatchObject({ status: 422 });
    await expect(call(UPDATE, { body: { repo: "backend", sha: "not a sha" }, secret })).rejects.toThrow();
  });
});

describe("the deployments of an administrator", () => {
  it("show locks, builds, listeners and events, and never the token of a lock", async () => {
    const token = "t".repeat(22);
    await ctx.redis.commands.set(keys.lock({ repo: "jobs" }), token, "EX", 300);
    await ctx.redis.commands.set(keys.buildHash({ repo: "frontend-web" }), "abcdef1");
    await ctx.subscriber.subscribe(keys.updates({ repo: "jobs" }), () => {});
    await call(UPDATE, { body: { repo: "jobs", sha: "abcdef1" }, secret });
    const { status, body } = await call("/api/1/admin/deployments");
    expect(status).toBe(200);
    const route = routes.find(({ path }) => path === "/api/1/admin/deployments")!;
    const shown = route.responses![200]!.parse(body) as { units: { repo: string }[]; events: unknown[] };
    expect(shown.units.map(({ repo }) => repo)).toEqual([
      "backend",
      "jobs",
      "websocket",
      "frontend-web",
      "frontend-ssr-web",
      "email-templates",
      "landing-page",
    ]);
    expect(shown.units[1]).toMatchObject({ subscribers: 1, lock: { expires_in: expect.any(Number) } });
    expect(shown.units[3]).toMatchObject({ kind: "build", lock: null, build_hash: "abcdef1" });
    expect(shown.events[0]).toMatchObject({ repo: "jobs", event: "requested", sha: "abcdef1" });
    expect(JSON.stringify(body)).not.toContain(token);
  });

  it("can be unlocked", async () => {
    await ctx.redis.commands.set(keys.lock({ repo: "backend" }), "t".repeat(22), "EX", 300);
    const unlock = "/api/1/admin/deployments/{repo}/unlock";
    expect(await call(unlock, { params: { repo: "backend" } })).toEqual({ status: 204 });
    expect(await ctx.redis.commands.exists(keys.lock({ repo: "backend" }))).toBe(0);
    await expect(call(unlock, { params: { repo: "unknown" } })).rejects.toMatchObject({ status: 422 });
    expect(routes.filter(({ path }) => path.includes("/admin/")).every(({ access }) => access === "admin")).toBe(true);
  });
});
