import { type KeyObject, verify, X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { parse } from "node:querystring";
import { promisify } from "node:util";
import { fastify } from "fastify";
import { domains } from "../../src/domains.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import { type Context, JobQueue, RecurringSet } from "../../src/jobs/index.ts";
import { AlertRecorder } from "../../src/kernel/alerts.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { Config } from "../../src/kernel/config.ts";
import { Catalogue } from "../../src/kernel/keyspace/index.ts";
import { openLog } from "../../src/kernel/log.ts";
import { Metrics } from "../../src/kernel/metrics.ts";
import { openRedis, Subscriber } from "../../src/kernel/redis/index.ts";
import type { Sql } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { settings as roomSettings } from "../../src/messaging/sms/settings.ts";
import type { Providers } from "../../src/providers/index.ts";
import { emailSettings, twilioAccounts } from "../../src/providers/settings.ts";
import { type SnsEnvelope, signedText } from "../../src/providers/sns.ts";
import { CERTIFICATE_PATH } from "../../src/sandbox/sns-signer.ts";
import { buildServer } from "../../src/surfaces/http/index.ts";

/** What the measuring process tells the one that serves. */
export interface ServerPlan {
  /** Checking: the bare route, which checks signatures of SNS too, and nothing else. */
  readonly side: "ours" | "bare" | "checking";
  readonly socketPath: string;
  readonly authToken: string;
  readonly publicUrl: string;
  readonly topicArn: string;
  readonly snsUrl: string;
}

/** Our whole server with its real log and measurements. It has no SQL: whoever asked for it would fail. */
async function ours(plan: ServerPlan) {
  const redis = openRedis({ kind: "socket", path: plan.socketPath });
  await redis.ready();
  const config = new Config([]).with(
    [accessSettings.rootSecret, "a root secret for measuring, long enough"],
    [twilioAccounts.twilio.authToken, plan.authToken],
    [roomSettings.publicUrl, plan.publicUrl],
    [emailSettings.provider, ["ses"]],
    [emailSettings.snsTopicArns, [plan.topicArn]],
    [emailSettings.snsBaseUrl, plan.snsUrl],
  );
  const base = {
    clock: systemClock,
    config,
    log: openLog({ level: "info", pretty: false }),
    alerts: new AlertRecorder(),
    metrics: new Metrics(),
    redis,
    cacheRedis: redis,
    subscriber: new Subscriber(redis, systemClock),
    sql: new Proxy({} as Sql, {
      get() {
        throw new Error("a webhook asked for SQL");
      },
    }),
    hostname: "web-bench-1",
  };
  const rooms = domains.filter(({ name }) => ["users", "access", "contacts", "sms", "email"].includes(name));
  const runners = domains.flatMap((room) => room.runners ?? []);
  const recurring = new RecurringSet(
    domains.flatMap((room) => room.recurring ?? []),
    "UTC",
  );
  const jobs = new JobQueue(base, { runners, recurring });
  const ctx: Context = {
    ...base,
    jobs,
    locks: new Locks(base),
    catalogue: new Catalogue(domains),
    providers: {} as Providers,
  };
  return buildServer(ctx, rooms);
}

/** What a team would write first: a route, a parser of its body, an answer. No log, no hooks, nothing kept; checked is at most what SNS signed. */
function bare(isGenuine?: (envelope: SnsEnvelope) => Promise<boolean>) {
  const app = fastify({ bodyLimit: 1_048_576 });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
    done(null, parse(body as string)),
  );
  app.addContentTypeParser("text/plain", { parseAs: "string" }, (_request, body, done) => {
    const envelope = JSON.parse(body as string) as SnsEnvelope;
    done(null, { envelope, message: JSON.parse(envelope.Message) });
  });
  app.post("/api/1/sms/webhook", (_request, reply) => void reply.code(200).send());
  if (!isGenuine) app.post("/api/1/emails/sns-mail", (_request, reply) => void reply.code(200).send());
  else
    app.post<{ Body: { envelope: SnsEnvelope } }>("/api/1/emails/sns-mail", async ({ body }, reply) => {
      reply.code((await isGenuine(body.envelope)) ? 200 : 403).send();
      return reply;
    });
  return app;
}

/** Off the thread that serves, as ours. */
async function checkerOf({ snsUrl }: ServerPlan) {
  const certificate = await (await fetch(`${snsUrl}${CERTIFICATE_PATH}`)).text();
  const { publicKey } = new X509Certificate(certificate);
  const verifying = promisify(verify) as (
    algorithm: string,
    text: Buffer,
    key: KeyObject,
    signature: Buffer,
  ) => Promise<boolean>;
  return (envelope: SnsEnvelope) =>
    verifying("RSA-SHA256", Buffer.from(signedText(envelope)), publicKey, Buffer.from(envelope.Signature, "base64"));
}

process.on("message", async (message: ServerPlan | "cpu" | "stop") => {
  if (message === "cpu") return void process.send!({ cpu: process.cpuUsage() });
  if (message === "stop") return process.exit(0);
  const app =
    message.side === "ours"
      ? await ours(message)
      : bare(message.side === "checking" ? await checkerOf(message) : undefined);
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  process.send!({ port });
});
