import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import type { Domain } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route, RouteReply } from "../../kernel/route.ts";
import { doorOf } from "./caller.ts";
import { originHeaders } from "./cors.ts";
import { errors } from "./errors.ts";
import { failureHandler } from "./failure.ts";
import { commonHeaders, hasSaneHost } from "./headers.ts";
import { describeRoute, payloadOf, routerPath } from "./mount.ts";
import { logFailures, type Measured } from "./observe.ts";
import { PlainRequest } from "./plain-request.ts";
import { settings } from "./settings.ts";
import { checkBySchema } from "./validation.ts";

export interface QuietSurroundings {
  readonly domains: readonly Domain[];
  readonly measured: Measured;
  draining(): boolean;
}

/**
 * Mounts the routes whose requests come by the thousand, in a scope of their own. They answer with the headers of every
 * other route and refuse in the same shape; but nobody waits for hooks that have nothing to do here, and an answer that
 * went well is written past the framework, whose part is over by then.
 */
export async function mountQuiet(app: FastifyInstance, ctx: Context, surroundings: QuietSurroundings): Promise<void> {
  await app.register(async (scope) => {
    logFailures(scope, ctx, surroundings.measured);
    for (const { name, routes = [] } of surroundings.domains)
      for (const route of routes) if (route.quiet) mountOne(scope, ctx, name, route, surroundings);
  });
}

function mountOne(
  scope: FastifyInstance,
  ctx: Context,
  room: string,
  route: Route<Context>,
  { draining }: QuietSurroundings,
): void {
  const allowed = new Set(ctx.config.get(settings.allowedOrigins));
  const fail = failureHandler(ctx);
  const headersOf = (request: FastifyRequest): readonly string[] => {
    const headers = commonHeaders(request);
    if (allowed.size > 0) headers.push(...originHeaders(allowed, request));
    if (draining()) headers.push("connection", "close");
    return headers;
  };
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const headers = headersOf(request);
    for (let at = 0; at < headers.length; at += 2) reply.header(headers[at]!, headers[at + 1]);
    fail(error, request, reply);
  };
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      write(reply, await route.handle(ctx, new PlainRequest(request)), headersOf(request));
    } catch (error) {
      refuse(error, request, reply);
    }
  };
  const door = doorOf(ctx, route);
  const enter: typeof door = (request, reply, done) =>
    hasSaneHost(request)
      ? door(request, reply, done)
      : done(errors.bad_request({ message: "The Host header is malformed." }));
  const options: RouteOptions = {
    method: route.method,
    url: routerPath(route.path),
    schema: describeRoute(room, route),
    onRequest: enter,
    // Without the promise, which the framework would wait for although it has its answer.
    handler: (request, reply) => void answer(request, reply),
    errorHandler: (error, request, reply) => refuse(error, request, reply),
    ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
  };
  if (route.consumes === "nothing") {
    const check = paramsCheck(route);
    // Answered before the framework would read a body.
    options.onRequest = (request, reply, done) =>
      enter(request, reply, (error) => {
        const refused = error ?? check(request.params);
        if (refused) done(refused);
        else void answer(request, reply);
      });
  }
  scope.route(options);
}

/** What the framework does after reading a body, for routes that have none. */
function paramsCheck(route: Route<Context>): (params: unknown) => Error | undefined {
  const schema = route.schemas?.params;
  if (!schema) return () => undefined;
  const check = checkBySchema({ schema, httpPart: "params", method: route.method, url: route.path });
  return (params) => {
    const result = check(params) as { readonly error?: unknown };
    if (result.error === undefined) return undefined;
    return Object.assign(new Error("invalid parameters"), { validation: result.error, validationContext: "params" });
  };
}

/** An answer names each header once: its own stand before those of every answer. */
function write(reply: FastifyReply, answer: RouteReply, common: readonly string[]): void {
  const own = answer.headers ?? NONE;
  const headers: string[] = [];
  for (const name in own) headers.push(name, own[name]!);
  for (let at = 0; at < common.length; at += 2)
    if (own[common[at]!] === undefined) headers.push(common[at]!, common[at + 1]!);
  const body = payloadOf(answer);
  const isText = body === undefined || typeof body === "string";
  const payload = isText ? (body ?? "") : JSON.stringify(body);
  if (!isText) headers.push("content-type", "application/json; charset=utf-8");
  if (answer.status !== 204 && answer.status !== 304)
    headers.push("content-length", String(Buffer.byteLength(payload)));
  reply.raw.writeHead(answer.status, headers);
  // Not before: headers that cannot be written are refused like anything else that fails.
  reply.hijack();
  if (payload === "") reply.raw.end();
  else reply.raw.end(payload);
}

const NONE: NonNullable<RouteReply["headers"]> = {};
