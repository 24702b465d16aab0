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

/** What every answer carries, names and values in turn. */
export function commonHeaders(request: FastifyRequest): string[] {
  const headers = [
    "x-request-id",
    request.id,
    "x-content-type-options",
    "nosniff",
    "x-frame-options",
    "DENY",
    "referrer-policy",
    "no-referrer",
    "cross-origin-opener-policy",
    "same-origin",
    "content-security-policy",
    DATA_POLICY,
  ];
  if (request.url.startsWith("/api/")) headers.push("cache-control", "no-store");
  if (request.protocol === "https") headers.push("strict-transport-security", "max-age=31536000");
  return headers;
}

export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const headers = commonHeaders(request);
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at]!, headers[at + 1]);
}
