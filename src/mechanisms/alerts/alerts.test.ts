import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { loadConfig } from "../../kernel/config.ts";
import { defineErrors } from "../../kernel/errors.ts";
import { AlertReporter, alertKeys, alertSettings, RecentAlert, redact, truncate } from "./index.ts";

interface Posted extends RecentAlert {
  preview: string;
}

let ctx: TestContext;
let receiver: Server;
let url: string;
let status = 200;
let answering = true;
const posted: { path: string; alert: Posted }[] = [];
const logged: Record<string, unknown>[] = [];
const log = pino({ level: "info" }, { write: (line: string) => void logged.push(JSON.parse(line)) });

beforeAll(async () => {
  ctx = await openTestContext();
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      posted.push({ path: request.url ?? "", alert: JSON.parse(Buffer.concat(chunks).toString()) as Posted });
      if (!answering) return;
      response.statusCode = status;
      response.end("thanks");
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
beforeEach(() => ctx.flush());
afterEach(() => {
  posted.length = 0;
  logged.length = 0;
  status = 200;
  answering = true;
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await ctx.close();
});

const reporter = (overrides: Partial<ConstructorParameters<typeof AlertReporter>[0]> = {}) =>
  new AlertReporter({
    log,
    clock: ctx.clock,
    redis: ctx.redis,
    hostname: "web-test-1",
    alertWebhookUrl: `${url}/alert`,
    opsWebhookUrl: `${url}/ops`,
    ...overrides,
  });

const recent = async () =>
  (await ctx.redis.commands.lrange(alertKeys.recent(), 0, -1)).map((raw) => RecentAlert.parse(JSON.parse(raw)));

describe("reporting", () => {
  it("a warning is logged, kept and posted with all of its fields", async () => {
    const alerts = reporter();
    alerts.warning("files:in_use", "a file is still used");
    await alerts.settled();
    const expected = {
      level: "warning",
      identifier: "files:in_use",
      text: `web-test-1 (pid ${process.pid}): a file is still used`,
      host: "web-test-1",
      occurred_at: ctx.clock.now(),
    };
    expect(await recent()).toEqual([expected]);
    expect(posted).toEqual([{ path: "/alert", alert: { ...expected, preview: "a file is still used" } }]);
    expect(logged.map(({ msg }) => msg)).toContain("a file is still used");
  });

  it("urgent warnings and news go to the operators, and to the alert webhook if that is all there is", async () => {
    const alerts = reporter();
    alerts.warning("redis:policy", "queues could be evicted", { urgent: true });
    alerts.ops("ready");
    await alerts.settled();
    const alone = reporter({ opsWebhookUrl: undefined });
    alone.ops("ready again");
    await alone.settled();
    expect(posted.map(({ path, alert }) => `${path} ${alert.level}`).sort()).toEqual([
      "/alert ops",
      "/ops ops",
      "/ops urgent",
    ]);
  });

  it("an error comes with its code, five innermost frames and extra text that is cut", async () => {
    const { broken } = defineErrors({ broken: { status: 500, doc: "It broke." } });
    const alerts = reporter();
    const deep = (levels: number): Error => (levels === 0 ? broken() : deep(levels - 1));
    alerts.error(deep(12), "x".repeat(300));
    alerts.error("just text");
    await alerts.settled();
    const [text, error] = await recent();
    expect(error).toMatchObject({ level: "error", identifier: "error:broken" });
    expect(error!.text).toContain("It broke.");
    expect(error!.text.match(/^ +at /gm)).toHaveLength(5);
    expect(error!.text.endsWith(`\n${"x".repeat(241)}... (truncated)`)).toBe(true);
    expect(text).toMatchObject({ identifier: "error:string" });
    expect(logged.some(({ err }) => String((err as { stack?: string } | undefined)?.stack).includes("deep"))).toBe(
      true,
    );
  });

  it("keeps the newest two hundred, the newest on the left", async () => {
    const alerts = reporter({ alertWebhookUrl: undefined });
    for (let number = 0; number < 230; number++) {
      alerts.warning(`test:${number}`, "again");
      if (number % 50 === 0) await alerts.settled();
    }
    await alerts.settled();
    const kept = await recent();
    expect(kept).toHaveLength(200);
    expect(kept[0]!.identifier).toBe("test:229");
  });

  it("tells each identifier five times an hour, logs the rest, and then says how many were held back", async () => {
    const alerts = reporter();
    for (let times = 0; times < 12; times++) alerts.warning("sql:slow_query", "slow");
    alerts.warning("other", "not affected");
    await alerts.settled();
    expect(posted.filter(({ alert }) => alert.identifier === "sql:slow_query")).toHaveLength(5);
    expect(posted.filter(({ alert }) => alert.identifier === "other")).toHaveLength(1);
    expect(logged.filter(({ identifier }) => identifier === "sql:slow_query")).toHaveLength(12);
    await ctx.clock.advance(3600);
    posted.length = 0;
    alerts.warning("sql:slow_query", "slow");
    await alerts.settled();
    expect(posted[0]!.alert.text).toMatch(/slow\n7 more of these were held back/);
  });
});

describe("never in the way", () => {
  it("does not throw, wait or leak the address when the webhook is unreachable", async () => {
    const alerts = reporter({ alertWebhookUrl: "http://127.0.0.1:1/hook/s3cret" });
    expect(alerts.warning("a", "b")).toBeUndefined();
    expect(alerts.error(new Error("c"))).toBeUndefined();
    await alerts.settled();
    expect(logged.filter(({ msg }) => msg === "an alert could not be delivered")).toHaveLength(2);
    expect(JSON.stringify(logged)).not.toContain("s3cret");
    expect(await recent()).toHaveLength(2);
  });

  it("a webhook that refuses, and an address that is none, are logged only", async () => {
    status = 500;
    const alerts = reporter({ opsWebhookUrl: "not an address" });
    alerts.warning("a", "b");
    alerts.ops("c");
    await alerts.settled();
    expect(posted).toHaveLength(1);
    expect(logged.filter(({ msg }) => msg === "an alert could not be delivered")).toHaveLength(2);
  });

  it("a webhook that never answers holds up neither the caller nor the other alerts", async () => {
    answering = false;
    const alerts = reporter();
    alerts.warning("a", "b");
    alerts.warning("c", "d");
    await eventually(() => posted.length === 2);
    await eventually(async () => (await recent()).length === 2);
    receiver.closeAllConnections();
    await alerts.settled();
  });

  it("without Redis alerts are still logged and posted", async () => {
    const gone = ctx.process();
    await gone.redis.ready();
    gone.redis.commands.disconnect();
    const alerts = reporter({ redis: gone.redis });
    alerts.warning("a", "b");
    await alerts.settled();
    expect(posted).toHaveLength(1);
  });

  it("whatever is thrown can be reported", async () => {
    const alerts = reporter({ alertWebhookUrl: undefined });
    const hostile = {
      toString() {
        throw new Error("no text");
      },
    };
    for (const thrown of [undefined, null, 5, Symbol("x"), hostile, Object.create(null)]) alerts.error(thrown);
    await alerts.settled();
    expect((await recent()).length).toBeGreaterThanOrEqual(4);
  });
});

describe("redaction", () => {
  it("values of secret fields are replaced by name, in JSON, in forms, in headers and in addresses", () => {
    expect(redact('{"password":"p\\"w","name":"Ann","refresh_token": "r"}')).toBe(
      '{"password":"[redacted]","name":"Ann","refresh_token": "[redacted]"}',
    );
    expect(redact("token=abc&user=ann")).toBe("token=[redacted]&user=ann");
    expect(redact("authorization: Bearer abc.def")).toBe("authorization: Bearer [redacted]");
    expect(redact("redis://user:pass@host:6379/0")).toBe("redis://[redacted]@host:6379/0");
    expect(redact("body: 'hello there'")).toBe('body: "[redacted]"');
    expect(redact("the job ended after 3 s: list_exhausted")).toBe("the job ended after 3 s: list_exhausted");
  });

  it("secrets reach neither the kept alert nor the webhook nor the log", async () => {
    const alerts = reporter();
    alerts.warning("a", 'refused {"access_token":"s3cret"}');
    alerts.error(new Error("bad password=s3cret"), '{"body":"s3cret"}');
    await alerts.settled();
    expect(JSON.stringify([posted, await recent()])).not.toContain("s3cret");
    expect(JSON.stringify(logged.map(({ msg, extra }) => [msg, extra]))).not.toContain("s3cret");
  });

  it("extra text is whole up to 256 characters", () => {
    expect(truncate("x".repeat(256))).toBe("x".repeat(256));
    expect(truncate("x".repeat(257))).toBe(`${"x".repeat(241)}... (truncated)`);
  });
});

it("the webhooks are secret settings with the names operators know", () => {
  const declared = Object.values(alertSettings);
  const config = loadConfig(declared as never, { environment: { CARILLON_ALERT_WEBHOOK_URL: "http://a" } });
  expect(config.get(alertSettings.alertWebhookUrl)).toBe("http://a");
  expect(declared.map(({ env, secret }) => [env, secret])).toEqual([
    ["CARILLON_ALERT_WEBHOOK_URL", true],
    ["CARILLON_OPS_WEBHOOK_URL", true],
  ]);
});
