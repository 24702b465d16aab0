import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../jobs/context.ts";
import { harmless } from "../../kernel/log.ts";

/** Measures a request that was answered; tells how many seconds it took. */
export type Measured = (request: FastifyRequest, reply: FastifyReply) => number;

/** The address is the route's pattern: a real one may hold a secret. */
const routeOf = (request: FastifyRequest): string => request.routeOptions.url ?? "(none)";

export function requestSeconds(ctx: Pick<Context, "metrics">): Measured {
  const seconds = ctx.metrics.histogram("carillon_http_request_seconds", "Time from a request to its answer.", [
    "method",
    "route",
    "status",
  ]);
  return (request, reply) => {
    const took = reply.elapsedTime / 1000;
    seconds.observe({ method: request.method, route: routeOf(request), status: String(reply.statusCode) }, took);
    return took;
  };
}

/** Measures every request of a scope, and logs those that failed. */
export function logFailures(scope: FastifyInstance, ctx: Pick<Context, "log">, measured: Measured): void {
  scope.addHook("onResponse", (request, reply, done) => {
    const seconds = measured(request, reply);
    if (reply.statusCode >= 400) logRequest(ctx, request, reply, seconds);
    done();
  });
}

export function logRequest(
  ctx: Pick<Context, "log">,
  request: FastifyRequest,
  reply: FastifyReply,
  seconds: number,
): void {
  const { id: request_id, method } = request;
  harmless(ctx.log).info({ request_id, method, route: routeOf(request), status: reply.statusCode, seconds }, "request");
}
