import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import type { Context } from "../../jobs/context.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../../providers/channels.ts";
import type { EmailOutcome, EmailProvider } from "../../providers/email.ts";
import { intervalsOf } from "./apis.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { apiSpacingErrors, externalApis, type LimiterState, limiterStates } from "./service.ts";

let world: TestContext;
beforeAll(async () => {
  world = await openTestContext();
});
afterAll(() => world.close());
beforeEach(() => world.flush());

const broken = async () => (await Promise.all(invariants.map((invariant) => invariant.check(world)))).flat();

describe("calls to a spaced API", () => {
  it("stay 40 s apart over five processes, and a sixth caller in a hurry reserves nothing", async () => {
    const start = world.clock.now();
    const times: number[] = [];
    const processes = Array.from({ length: 5 }, () => world.process());
    let callers = processes.length;
    const lives = processes.map(async (ctx) => {
      for (let i = 0; i < 10; i++)
        await externalApis.call(ctx, "pexels", { interval: "search" }, async () => {
          times.push(ctx.clock.now());
        });
      callers--;
    });
    const sixth = world.process();
    for (let call = 1; call <= 50; call++) {
      await eventually(() => times.length === call, `call ${call}`);
      // Everybody who still has calls to make is asleep again before time goes on.
      await eventually(() => world.clock.sleeping === callers, "all others wait");
      if (call === 10) {
        const before = await world.redis.commands.get(keys.limiter({ api: "pexels" }));
        const busy = externalApis.call(sixth, "pexels", { interval: "search", maxWait: 60 }, async () => "called");
        await expect(busy).rejects.toSatisfy(apiSpacingErrors.api_busy.matches);
        await expect(busy).rejects.toMatchObject({ status: 503, retryAfter: 5 * 40 + 40 });
        expect(await world.redis.commands.get(keys.limiter({ api: "pexels" }))).toBe(before);
        expect(await broken()).toEqual([]);
      }
      if (call < 50) await world.clock.advance(40);
    }
    await Promise.all(lives);
    expect(times).toEqual(Array.from({ length: 50 }, (_, index) => start + index * 40));
  });

  it("keep their own distance from a call of another kind", async () => {
    const times: number[] = [];
    const call = async (kind: "query" | "download") =>
      externalApis.call(world, "ccmixter", { interval: kind }, async () => times.push(world.clock.now()));
    const start = world.clock.now();
    await call("query");
    const download = call("download");
    await eventually(() => world.clock.sleeping === 1);
    await world.clock.advance(30);
    await download;
    const query = call("query");
    await eventually(() => world.clock.sleeping === 1);
    await world.clock.advance(3);
    await query;
    expect(times).toEqual([start, start + 30, start + 33]);
  });

  it("are not made when the wait is interrupted, and their slot is wasted", async () => {
    await externalApis.call(world, "chatgpt", { interval: "complete" }, async () => undefined);
    const stop = new AbortController();
    const waiting = externalApis
      .call(world, "chatgpt", { interval: "complete", signal: stop.signal }, async () => "called")
      .catch(() => "interrupted");
    await eventually(() => world.clock.sleeping === 1);
    stop.abort();
    expect(await waiting).toBe("interrupted");
    const [state] = (await limiterStates(world)).filter(({ api }) => api === "chatgpt");
    expect(state?.last_used_at).toBeCloseTo(world.clock.now() + 3, 3);
  });

  it("are measured by how long they waited", async () => {
    await externalApis.call(world, "dall-e", { interval: "generate" }, async () => undefined);
    expect(await world.metrics.text()).toContain('carillon_api_limiter_wait_seconds_count{api="dall-e"} 1');
  });

  it("are declared with the intervals their providers ask for", () => {
    expect(intervalsOf("pexels")).toEqual({ search: 40, download: 40 });
    expect(intervalsOf("dall-e")).toEqual({ generate: 5 });
    expect(intervalsOf("whisper-1")).toEqual({ transcribe: 5 });
    expect(intervalsOf("chatgpt")).toEqual({ complete: 3 });
    expect(intervalsOf("ccmixter")).toEqual({ query: 3, download: 30 });
  });
});

describe("GET /api/1/admin/api_limiters", () => {
  it("lists every API with its last and next free moment", async () => {
    await externalApis.call(world, "ccmixter", { interval: "query" }, async () => undefined);
    const [route] = routes;
    expect(route?.access).toBe("admin");
    const reply = await route!.handle(world as unknown as Context, undefined as never);
    const { items } = reply.body as { items: LimiterState[] };
    const now = world.clock.now();
    expect(items.map(({ api }) => api)).toEqual(["pexels", "dall-e", "whisper-1", "chatgpt", "ccmixter"]);
    expect(items[0]).toMatchObject({ last_used_at: null, next_free_at: now });
    expect(items[4]).toMatchObject({ last_used_at: now, next_free_at: now + 30 });
  });
});

describe("GET /api/1/admin/providers", () => {
  it("names the providers of each channel in their order, and those that are passed over", async () => {
    const down: EmailOutcome = {
      ok: false,
      identifier: "SESServerError",
      subidentifier: "503",
      retryable: true,
      extra: null,
      outage: true,
    };
    const named = (name: string, outcome: EmailOutcome): EmailProvider => ({
      name,
      hasReceipts: true,
      send: async () => outcome,
      quota: async () => undefined,
      reset: async () => {},
      close: async () => {},
    });
    const taken: EmailOutcome = { ok: true, messageId: "1", hasReceipts: true };
    const email = new EmailChannel(world, [named("ses", down), named("smtp", taken)]);
    const providers = { push: new PushChannel(world, []), sms: new SmsChannel(world, []), email };
    for (let at = 0; at < 12; at++)
      await email.send({ from: "a@example.com", to: "b@example.com", mime: Buffer.from("") });
    const route = routes.find(({ path }) => path === "/api/1/admin/providers")!;
    expect(route.access).toBe("admin");
    const reply = await route.handle({ ...world, providers } as unknown as Context, undefined as never);
    expect(reply.body).toEqual({
      items: [
        { channel: "email", provider: "ses", outages: 10, open: true },
        { channel: "email", provider: "smtp", outages: 0, open: false },
      ],
    });
    const metrics = await world.metrics.text();
    expect(metrics).toContain('carillon_provider_messages_total{channel="email",provider="ses",outcome="failed"} 10');
    expect(metrics).toContain('carillon_provider_messages_total{channel="email",provider="smtp",outcome="taken"} 2');
  });
});

describe("the audit of limiters", () => {
  it("reports a value that is no number and one that never expires", async () => {
    await world.redis.commands.set(keys.limiter({ api: "pexels" }), "soon");
    expect(await broken()).toHaveLength(2);
  });
});
