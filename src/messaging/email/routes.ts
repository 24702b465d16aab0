import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { type Route, receivedOf } from "../../kernel/route.ts";
import { adminRoutes } from "./admin-routes.ts";
import { unsubscribeRoutes } from "./unsubscribe-routes.ts";
import { LARGEST_BODY, takeNotification } from "./webhook.ts";

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/emails/sns-mail",
    access: "public",
    summary: "A topic of Amazon SNS reports what became of a mail",
    description: "Signed by Amazon, from a topic in `email.sns.topicArns`; everybody else is refused.",
    consumes: "webhook",
    bodyLimit: LARGEST_BODY,
    responses: { 200: z.unknown(), 202: z.unknown() },
    handle: async (ctx, request) => ({ status: await takeNotification(ctx, receivedOf(request)) }),
  }),
  ...unsubscribeRoutes,
  ...adminRoutes,
];
