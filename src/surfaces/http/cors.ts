import type { FastifyInstance } from "fastify";

const METHODS = "GET, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS = "authorization, content-type, x-request-id, idempotency-key, visitor";
const SHOWN_HEADERS = "x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset";
const PREFLIGHT_SECONDS = "600";

/**
 * Pages of the named origins may call the interface with an Authorization header. Credentials are never allowed, so a
 * browser sends no cookie along and a foreign page can do nothing in a signed-in person's name.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  const allowed = new Set(origins);
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.url.startsWith("/api/1/")) return done();
    if (allowed.size > 0) reply.header("vary", "Origin");
    const { origin } = request.headers;
    const isPreflight = request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
    if (origin !== undefined && allowed.has(origin)) {
      reply.header("access-control-allow-origin", origin);
      reply.header("access-control-expose-headers", SHOWN_HEADERS);
      if (isPreflight)
        reply
          .header("access-control-allow-methods", METHODS)
          .header("access-control-allow-headers", REQUEST_HEADERS)
          .header("access-control-max-age", PREFLIGHT_SECONDS);
    }
    if (isPreflight) return void reply.code(204).send();
    done();
  });
}
