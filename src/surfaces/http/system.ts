import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { errors as accessErrors, bearerOf } from "../../infrastructure/access/service.ts";
import type { Context } from "../../jobs/context.ts";
import { errors } from "./errors.ts";
import { Failure } from "./failure.ts";
import { isReady, type Readiness } from "./readiness.ts";
import { settings } from "./settings.ts";

const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip"];

/** What watches the server rather than uses it: is it alive, can it serve, what does it count. */
export function serveSystem(
  app: FastifyInstance,
  ctx: Context,
  options: { readiness: () => Promise<Readiness>; draining: () => boolean },
): void {
  const shared = { tags: ["server"], security: [] };
  app.get(
    "/healthz",
    {
      schema: {
        ...shared,
        summary: "Whether the process is alive",
        operationId: "healthz",
        response: { 200: z.object({ status: z.literal("ok") }) },
      },
    },
    async () => ({ status: "ok" as const }),
  );
  app.get(
    "/readyz",
    {
      schema: {
        ...shared,
        summary: "Whether the server can serve requests",
        operationId: "readyz",
        response: { 200: z.object({ status: z.literal("ready") }), 503: Failure },
      },
    },
    async () => {
      const readiness = await options.readiness();
      if (options.draining()) throw errors.not_ready({ message: "The server is shutting down.", detail: readiness });
      if (!isReady(readiness)) throw errors.not_ready({ detail: readiness });
      return { status: "ready" as const };
    },
  );
  app.get(
    "/metrics",
    {
      schema: {
        ...shared,
        summary: "Metrics in the Prometheus text format",
        operationId: "metrics",
        security: [{ metrics_token: [] }],
        response: { "4xx": Failure },
      },
    },
    async (request, reply) => {
      checkMetricsAccess(ctx, request);
      return reply.type("text/plain; version=0.0.4; charset=utf-8").send(await ctx.metrics.text());
    },
  );
}

function checkMetricsAccess(ctx: Context, request: FastifyRequest): void {
  const wanted = ctx.config.get(settings.metricsToken);
  if (wanted !== undefined) {
    const given = bearerOf(request.headers.authorization);
    if (given === undefined) throw accessErrors.credential_missing();
    if (!sameSecret(given, wanted)) throw accessErrors.credential_invalid();
    return;
  }
  // A proxy on this machine that nobody declared would make every stranger look local.
  const cameThroughProxy = FORWARDED.some((header) => request.headers[header] !== undefined);
  const believed = ctx.config.get(settings.trustedProxies).length > 0;
  if (!isLoopback(request.ip) || (cameThroughProxy && !believed)) throw errors.metrics_forbidden();
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

/** Compares digests, which have one length whatever was given. */
function sameSecret(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
