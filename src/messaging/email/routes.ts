import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { adminRoutes } from "./admin-routes.ts";
import { unsubscribeRoutes } from "./unsubscribe-routes.ts";
import { LARGEST_BODY, takeNotification } from "./webhook.ts";

/** The server reads somewhat more than is allowed, so that what is too long is refused and counted here. */
const READ_LIMIT = 2 * LARGEST_BODY;

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
  ...unsubscribeRoutes,
  ...adminRoutes,
];
