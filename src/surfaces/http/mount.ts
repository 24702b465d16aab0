import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import type { Route, RouteAccess, RouteReply, RouteRequest, RouteSchemas } from "../../kernel/route.ts";
import { callerOf, doorOf, recordAdminWrite } from "./caller.ts";
import { errors } from "./errors.ts";
import { Failure } from "./failure.ts";
import { checkAllButBody } from "./validation.ts";

/** How the interface description names who may call. */
const SECURITY: Readonly<Record<RouteAccess, readonly Record<string, string[]>[]>> = {
  public: [],
  token: [{ resource_token: [] }],
  user: [{ access_token: [] }],
  admin: [{ admin_token: [] }, { access_token: [] }, { session_cookie: [] }],
};

const UploadedFile = z.object({ file: z.string().meta({ format: "binary" }) });
const RawBody = z.string().meta({ format: "binary" });

/** `/users/{sub}` as the router writes it. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{([A-Za-z_][A-Za-z0-9_]*)\}/g, ":$1");
}

/** The same path as people and the interface description write it. */
export function documentedPath(path: string): string {
  return path.replaceAll(/:([A-Za-z_][A-Za-z0-9_]*)/g, "{$1}");
}

/** Turns a declared route into one that the server runs. */
export function mount(app: FastifyInstance, ctx: Context, room: string, route: Route<Context>): void {
  const audited = route.access === "admin" && route.method !== "GET";
  const options: RouteOptions = {
    method: route.method,
    url: routerPath(route.path),
    schema: describeRoute(room, route),
    onRequest: doorOf(ctx, route),
    handler: async (request, reply) => {
      const answer = await route.handle(ctx, requestOf(route, request));
      if (audited && answer.status < 400) await recordAdminWrite(ctx, route, request, answer.status);
      if (answer.headers) reply.headers(answer.headers);
      return reply.code(answer.status).send(payloadOf(answer));
    },
  };
  if (route.bodyLimit !== undefined) options.bodyLimit = route.bodyLimit;
  if (route.consumes === "multipart")
    options.preParsing = requireLength(route.bodyLimit ?? app.initialConfig.bodyLimit);
  if (route.consumes === "multipart" || route.consumes === "raw") options.validatorCompiler = checkAllButBody;
  app.route(options);
}

/** What the interface description says of a route, and what its parts are checked by. */
export function describeRoute(room: string, route: Route<Context>) {
  const schemas = route.schemas ?? {};
  const body =
    schemas.body ?? (route.consumes === "multipart" ? UploadedFile : takesBytes(route) ? RawBody : undefined);
  return {
    tags: [room],
    summary: route.summary,
    operationId: operationId(route),
    security: SECURITY[route.access],
    ...(route.description ? { description: route.description } : {}),
    ...(route.consumes === "multipart" ? { consumes: ["multipart/form-data"] } : {}),
    ...(takesBytes(route) ? { consumes: ["application/octet-stream"] } : {}),
    ...(schemas.params ? { params: schemas.params } : {}),
    ...(schemas.query ? { querystring: schemas.query } : {}),
    ...(body && route.method !== "GET" ? { body } : {}),
    response: { ...(route.responses ?? {}), "4xx": Failure, "5xx": Failure },
  };
}

const takesBytes = ({ consumes }: Route<Context>) => consumes === "raw" || consumes === "webhook";

/** `get_admin_users_by_sub`: stable, so that generated clients keep their names. */
function operationId({ method, path }: Route<Context>): string {
  const words = documentedPath(path)
    .replace(/^\/api\/\d+/, "")
    .split("/")
    .filter(Boolean)
    .map((word) => word.replace(/^\{(.*)\}$/, "by_$1"));
  return [method.toLowerCase(), ...words].join("_").replaceAll(/[^A-Za-z0-9_]/g, "_");
}

function requestOf(route: Route<Context>, request: FastifyRequest): RouteRequest<RouteSchemas> {
  const { params, query } = route.schemas ?? {};
  return {
    params: params ? request.params : undefined,
    query: query ? request.query : undefined,
    body: request.body ?? undefined,
    headers: request.headers,
    caller: callerOf(request),
    id: request.id,
    raw: request,
  } as RouteRequest<RouteSchemas>;
}

/** Nothing at all for answers without a body; text without a type is text. */
export function payloadOf({ status, body }: RouteReply): unknown {
  return status === 204 || status === 304 ? undefined : body;
}

/** The parser of uploads reads the socket by itself, so their length is judged by what they announce. */
function requireLength(limit: number | undefined) {
  return async (request: FastifyRequest) => {
    const announced = request.headers["content-length"];
    if (announced === undefined) throw errors.length_required();
    if (limit !== undefined && Number(announced) > limit)
      throw errors.body_too_large({ message: `The body is longer than the ${limit} bytes that this route takes.` });
  };
}
