import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { type Route, type RouteReply, receivedOf } from "../../kernel/route.ts";
import { INBOUND_WEBHOOK, STATUS_WEBHOOK } from "./addresses.ts";
import { adminRoutes } from "./admin-routes.ts";
import { takeInbound } from "./inbound.ts";
import { takeStatusWebhook } from "./status-webhook.ts";
import { LARGEST_BODY } from "./webhook-check.ts";

const replyOf = (status: number): RouteReply => ({ status });

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: STATUS_WEBHOOK,
    access: "public",
    summary: "The provider of texts reports a change of status",
    description: "Signed by the provider; everybody else is refused.",
    consumes: "webhook",
    bodyLimit: LARGEST_BODY,
    responses: { 200: z.unknown() },
    handle: (ctx, request) => takeStatusWebhook(ctx, receivedOf(request)).then(replyOf),
  }),
  route({
    method: "POST",
    path: INBOUND_WEBHOOK,
    access: "public",
    summary: "The provider of texts hands over what a person texted to us",
    description: "Signed by the provider; everybody else is refused. Answers with the reply to send, as XML.",
    consumes: "webhook",
    bodyLimit: LARGEST_BODY,
    responses: { 200: z.unknown() },
    handle: async (ctx, request) => {
      const { status, body } = await takeInbound(ctx, receivedOf(request));
      return body === undefined ? { status } : { status, body, headers: { "content-type": "text/xml; charset=utf-8" } };
    },
  }),
  ...adminRoutes,
];
