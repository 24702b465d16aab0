import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { newUid } from "../../kernel/ids.ts";

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SANE_HOST = /^[A-Za-z0-9._-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](:\d{1,5})?$/;

/** The caller's own id where it can be repeated in logs without harm, else a new one. */
export function requestId(request: Pick<IncomingMessage, "headers">): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SANE_REQUEST_ID.test(given) ? given : newUid("req");
}

export function hasSaneHost(request: FastifyRequest): boolean {
  const { host } = request.headers;
  return host === undefined || SANE_HOST.test(host);
}

/** An answer that is data: nothing in it may run, be framed or be kept by caches. Pages replace the policy. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'";

export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply
    .header("x-request-id", request.id)
    .header("x-content-type-options", "nosniff")
    .header("x-frame-options", "DENY")
    .header("referrer-policy", "no-referrer")
    .header("cross-origin-opener-policy", "same-origin")
    .header("content-security-policy", DATA_POLICY);
  if (request.url.startsWith("/api/")) reply.header("cache-control", "no-store");
  if (request.protocol === "https") reply.header("strict-transport-security", "max-age=31536000");
}
