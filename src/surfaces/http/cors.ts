import type { FastifyInstance, FastifyRequest } from "fastify";

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
    if (!isInterface(request)) return done();
    const headers = originHeaders(allowed, request);
    for (let at = 0; at < headers.length; at += 2) reply.header(headers[at]!, headers[at + 1]);
    const isPreflight = request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
    if (!isPreflight) return done();
    if (allowed.has(request.headers.origin ?? ""))
      reply
        .header("access-control-allow-methods", METHODS)
        .header("access-control-allow-headers", REQUEST_HEADERS)
        .header("access-control-max-age", PREFLIGHT_SECONDS);
    void reply.code(204).send();
  });
}

const isInterface = ({ url }: FastifyRequest) => url.startsWith("/api/1/");
const NONE: readonly string[] = [];

/** What an answer says of the origin that asked, names and values in turn. */
export function originHeaders(allowed: ReadonlySet<string>, request: FastifyRequest): readonly string[] {
  if (allowed.size === 0 || !isInterface(request)) return NONE;
  const { origin } = request.headers;
  if (origin === undefined || !allowed.has(origin)) return ["vary", "Origin"];
  return ["vary", "Origin", "access-control-allow-origin", origin, "access-control-expose-headers", SHOWN_HEADERS];
}
