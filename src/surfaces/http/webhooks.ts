import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Domain } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { ReceivedWebhook, Route, RouteReply } from "../../kernel/route.ts";
import { failureHandler } from "./failure.ts";
import { describeRoute, payloadOf, routerPath } from "./mount.ts";
import { logFailures, type Measured } from "./observe.ts";
import { PlainRequest } from "./plain-request.ts";

export interface WebhookSurroundings {
  readonly domains: readonly Domain[];
  readonly measured: Measured;
  draining(): boolean;
}

/**
 * Mounts the routes that take webhooks, in a scope of their own: bodies stay bytes, and none of the work is done that is for
 * people and their pages. What failed is logged like any other request.
 */
export async function mountWebhooks(
  app: FastifyInstance,
  ctx: Context,
  { domains, measured, draining }: WebhookSurroundings,
): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Any type at all, as a form and not as "*": which parser takes a type is remembered for forms only.
    scope.addContentTypeParser(/^/, { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    logFailures(scope, ctx, measured);
    for (const { name, routes = [] } of domains)
      for (const route of routes) if (route.consumes === "webhook") mountWebhook(scope, ctx, name, route, draining);
  });
}

function mountWebhook(
  scope: FastifyInstance,
  ctx: Context,
  room: string,
  route: Route<Context>,
  draining: () => boolean,
): void {
  const fail = failureHandler(ctx);
  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    body?: ReceivedWebhook["body"],
  ): Promise<void> => {
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    // Asked when there is an answer: the server may begin to close while it is worked out.
    const onItsWay = () => (draining() ? reply.header("connection", "close") : reply);
    try {
      const answer = await route.handle(ctx, new PlainRequest(request, body));
      send(onItsWay(), answer);
    } catch (error) {
      fail(error, request, onItsWay());
    }
  };
  scope.route({
    method: route.method,
    url: routerPath(route.path),
    schema: describeRoute(room, route),
    validatorCompiler: () => () => true,
    // Without the promise, which the framework would wait for although it has its answer.
    handler: (request, reply) => void answer(request, reply, request.body as Buffer),
    // The handler answers its own failures, so whatever comes here befell the body: reading it has stopped by then.
    errorHandler: (error, request, reply) =>
      void answer(request, reply, error.code === "FST_ERR_CTP_BODY_TOO_LARGE" ? "too_large" : "broken"),
    ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
  });
}

function send(reply: FastifyReply, answer: RouteReply): void {
  reply.code(answer.status);
  if (answer.headers) reply.headers(answer.headers);
  reply.send(payloadOf(answer));
}
