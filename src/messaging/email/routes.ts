import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { adminRoutes } from "./admin-routes.ts";
import { errors } from "./errors.ts";
import { comeBack, leave, leavingPage, meaninglessPage, wishOf } from "./unsubscribe.ts";
import { LARGEST_BODY, takeNotification } from "./webhook.ts";

/** The server reads somewhat more than is allowed, so that what is too long is refused and counted here. */
const READ_LIMIT = 2 * LARGEST_BODY;
const params = z.object({ token: z.string().max(2_048) });
const PAGE = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
};
const PLAIN = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/emails/sns-mail",
    access: "public",
    summary: "A topic of Amazon SNS reports what became of a mail",
    description: "Signed by Amazon, from a topic in `email.sns.topicArns`; everybody else is refused.",
    consumes: "raw",
    bodyLimit: READ_LIMIT,
    responses: { 200: z.unknown(), 202: z.unknown() },
    async handle(ctx, { headers, body }) {
      const bytes: unknown = body;
      return { status: await takeNotification(ctx, { headers, body: Buffer.isBuffer(bytes) ? bytes : undefined }) };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/emails/unsubscribe/{token}",
    access: "token",
    summary: "The page behind the link for leaving a list",
    description: "It has one button and changes nothing by itself.",
    schemas: { params },
    async handle(ctx, { params: { token }, caller }) {
      try {
        return { status: 200, headers: PAGE, body: leavingPage(await wishOf(ctx, token, caller.address)) };
      } catch (error) {
        if (!errors.invalid_unsubscribe_token.matches(error)) throw error;
        return { status: 404, headers: PAGE, body: meaninglessPage() };
      }
    },
  }),
  route({
    method: "POST",
    path: "/api/1/emails/unsubscribe/{token}",
    access: "token",
    summary: "Leave the lists with one click",
    description:
      "As RFC 8058 asks: no sign-in, no cookie, no redirect, whatever the body is encoded as. Repeating it changes nothing.",
    schemas: { params },
    consumes: "raw",
    bodyLimit: 16_384,
    responses: { 200: z.string() },
    async handle(ctx, { params: { token }, caller }) {
      await leave(ctx, await wishOf(ctx, token, caller.address));
      return { status: 200, headers: PLAIN, body: "You are unsubscribed.\n" };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/emails/unsubscribe/{token}/undo",
    access: "token",
    summary: "Take leaving the lists back",
    description: "Lifts the wish alone; bounces and complaints stay.",
    schemas: { params },
    consumes: "raw",
    bodyLimit: 16_384,
    responses: { 200: z.string() },
    async handle(ctx, { params: { token }, caller }) {
      const lifted = await comeBack(ctx, await wishOf(ctx, token, caller.address));
      const body = lifted ? "You are subscribed again.\n" : "Nothing was to be taken back.\n";
      return { status: 200, headers: PLAIN, body };
    },
  }),
  ...adminRoutes,
];
