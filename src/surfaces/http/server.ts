import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import multipart from "@fastify/multipart";
import fastify, { type FastifyInstance, LogController } from "fastify";
import { serializerCompiler } from "fastify-type-provider-zod";
import type { Domain } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { isSignedInBrowser } from "./caller.ts";
import { allowOrigins } from "./cors.ts";
import { describeRoutes, serveDocs } from "./docs.ts";
import { errors } from "./errors.ts";
import { failureBody, failureHandler, publicError, sendFailure } from "./failure.ts";
import { hasSaneHost, requestId, setCommonHeaders } from "./headers.ts";
import { serveLanding } from "./landing.ts";
import { type LiveGateway, serveLive } from "./live.ts";
import { MethodTable } from "./methods.ts";
import { mount } from "./mount.ts";
import { logRequest, type Measured, requestSeconds } from "./observe.ts";
import { servePages } from "./pages.ts";
import { mountQuiet } from "./quiet.ts";
import { checkReadiness, type Readiness } from "./readiness.ts";
import { settings } from "./settings.ts";
import { serveSystem } from "./system.ts";
import { checkBySchema } from "./validation.ts";
import { mountWebhooks } from "./webhooks.ts";

export interface ServerOptions {
  /** Shown on the first page and in the interface description. */
  readonly version?: string;
  /** Default: asks Redis, SQL, the scripts and the subscriber. */
  readonly readiness?: () => Promise<Readiness>;
  /** Takes the sockets of `/api/1/live`; without it the address does not exist. */
  readonly live?: LiveGateway;
  /** Where the built web pages are; without it, or when nobody built them, the dashboard says how to. */
  readonly pages?: string;
}

const KEEP_ALIVE_MS = 72_000;
const WHOLE_REQUEST_MS = 120_000;
const LONGEST_PARAMETER = 1_024;

/**
 * The HTTP server of a process, built from what the rooms declare.
 *
 * A request's way: common headers and its id; a foreign page's rights; is there such an address; the route's door
 * (credential, role, limits); the body; its schema; the handler; the audit row of an administrator's change; the
 * answer's schema. Every refusal on the way ends in `failure.ts` and looks the same.
 */
export async function buildServer(
  ctx: Context,
  domains: readonly Domain[],
  options: ServerOptions = {},
): Promise<FastifyInstance> {
  const proxies = ctx.config.get(settings.trustedProxies);
  const app = fastify({
    loggerInstance: withoutChildren(ctx.log),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: ctx.config.get(settings.bodyLimit),
    trustProxy: proxies.length > 0 ? [...proxies] : false,
    requestIdHeader: false,
    genReqId: requestId,
    routerOptions: { maxParamLength: LONGEST_PARAMETER, ignoreTrailingSlash: true },
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: WHOLE_REQUEST_MS,
    forceCloseConnections: "idle",
    // Requests that arrive on open connections while the server drains are still answered, in our own shape.
    return503OnClosing: false,
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      sendFailure(request, reply, publicError(error));
    },
  }) as unknown as FastifyInstance;
  const version = options.version ?? "development";
  const readiness = options.readiness ?? (() => checkReadiness(ctx));
  const methods = new MethodTable();
  let draining = false;

  app.setValidatorCompiler(checkBySchema);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(failureHandler(ctx));
  acceptJson(app);
  app.addHook("preClose", async () => {
    draining = true;
  });
  app.addHook("onRoute", ({ method, url }) => methods.add(url, method));
  await describeRoutes(app, domains, version);
  const measured = requestSeconds(ctx);
  const isDraining = () => draining;
  await mountWebhooks(app, ctx, { domains, measured, draining: isDraining });
  await mountQuiet(app, ctx, { domains, measured, draining: isDraining });
  // A scope of its own: what is done here for people and their pages is not done for those who come by the thousand.
  await app.register(async (scope) => {
    greet(scope, ctx, methods, isDraining);
    observe(scope, ctx, measured);
    if (options.live) await serveLive(scope, options.live);
    await mountAll(scope, ctx, domains);
    serveSystem(scope, ctx, { readiness, draining: isDraining });
    serveLanding(scope, { domains, version, readiness });
    servePages(scope, ctx, options.pages);
    await serveDocs(scope);
  });
  await app.ready();
  return app;
}

/**
 * Everything that is logged about a request names its id by itself, so no request has a log of its own. The framework asks
 * the log itself for one: a factory of ours would have its result examined for every request.
 */
function withoutChildren(log: Context["log"]): Context["log"] {
  const alone: Context["log"] = Object.create(log, { child: { value: () => alone } });
  return alone;
}

/** What every request meets before its route, and what every answer carries. */
function greet(app: FastifyInstance, ctx: Context, methods: MethodTable, draining: () => boolean): void {
  app.addHook("onRequest", (request, reply, done) => {
    setCommonHeaders(request, reply);
    done(hasSaneHost(request) ? undefined : errors.bad_request({ message: "The Host header is malformed." }));
  });
  // A connection that stayed open after its answer would keep the server from closing.
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (draining()) reply.header("connection", "close");
    done();
  });
  allowOrigins(app, ctx.config.get(settings.allowedOrigins));
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404) return done();
    const allowed = methods.at(request.url);
    if (allowed.length === 0) return done(errors.not_found());
    reply.header("allow", allowed.join(", "));
    done(errors.method_not_allowed());
  });
  // Never reached, since the hook above answers before any body is read: it makes the hooks here those of unknown addresses.
  app.setNotFoundHandler(() => {
    throw errors.not_found();
  });
}

/** What is no HTTP at all never becomes a request; it is answered on the bare socket. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const failure = error.code === "HPE_HEADER_OVERFLOW" ? errors.headers_too_large() : errors.bad_request();
  const body = JSON.stringify(failureBody(failure, newUid("req")));
  socket.end(
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}\r\nconnection: close\r\n` +
      `content-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Bodies are JSON; a request that says so and sends nothing has no body rather than a broken one. */
function acceptJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser("text/plain");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") return done(null, undefined);
    return parse(request, body as string, done);
  });
}

/** Routes that read their bodies differently live in scopes of their own, so that no other route takes such bodies. */
async function mountAll(app: FastifyInstance, ctx: Context, domains: readonly Domain[]): Promise<void> {
  const all = domains.flatMap(({ name, routes = [] }) =>
    routes.filter(({ quiet }) => !quiet).map((route) => ({ name, route })),
  );
  const taking = (kind: Route["consumes"]) => all.filter(({ route }) => (route.consumes ?? "json") === kind);
  for (const { name, route } of taking("json")) mount(app, ctx, name, route);
  await app.register(async (scope) => {
    await scope.register(multipart);
    for (const { name, route } of taking("multipart")) mount(scope, ctx, name, route);
  });
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    for (const { name, route } of taking("raw")) mount(scope, ctx, name, route);
  });
}

/**
 * One log line and one measurement a request; of routes that are quiet, and of what an open dashboard or inbox reads every
 * few seconds, a line only of what failed. The address is the route's pattern: a real one may hold a secret.
 */
function observe(app: FastifyInstance, ctx: Context, measured: Measured): void {
  app.addHook("onResponse", (request, reply, done) => {
    const seconds = measured(request, reply);
    const { quiet } = request.routeOptions.config as { readonly quiet?: boolean };
    const isRead = request.method === "GET";
    const isQuiet = quiet || (isRead && (isSignedInBrowser(request) || request.url.startsWith("/api/1/sandbox")));
    if (!isQuiet || reply.statusCode >= 400) logRequest(ctx, request, reply, seconds);
    done();
  });
}
