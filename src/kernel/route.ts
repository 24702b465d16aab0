import type { IncomingHttpHeaders } from "node:http";
import type { z } from "zod";

/** Who may call a route. `token` routes check a credential of their own, in their handler. */
export type RouteAccess = "public" | "user" | "admin" | "token";

export interface Caller {
  /** The signed-in user, or the administrator behind an admin token. */
  readonly sub: string | undefined;
  readonly role: "anonymous" | "user" | "admin";
  readonly address: string;
}

export interface RouteSchemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

export interface RouteRequest<S extends RouteSchemas> {
  readonly params: Parsed<S["params"]>;
  readonly query: Parsed<S["query"]>;
  readonly body: Parsed<S["body"]>;
  readonly headers: IncomingHttpHeaders;
  readonly caller: Caller;
  /** The request's id, which logs and error answers carry. */
  readonly id: string;
  /** The request as the server has it, for routes that read streams or raw bodies. */
  readonly raw: unknown;
}

export interface RouteReply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A route as data: what it takes, what it answers, who may call it, and what it does. The server turns the schemas into
 * validation, serialisation and the OpenAPI page at once.
 */
export interface Route<C = unknown, S extends RouteSchemas = RouteSchemas> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly access: RouteAccess;
  readonly summary: string;
  readonly description?: string;
  readonly schemas?: S;
  /** What each status answers; the lowest is the success. */
  readonly responses?: Readonly<Record<number, z.ZodType>>;
  /** Bytes; the server's default otherwise. */
  readonly bodyLimit?: number;
  /** `multipart` leaves the body to the handler, which reads parts from `request.raw`. */
  readonly consumes?: "json" | "multipart" | "raw";
  handle(ctx: C, request: RouteRequest<S>): Promise<RouteReply> | RouteReply;
}

/** Declares a route; the handler sees parsed values of exactly its schemas' types. */
export function defineRoute<C>() {
  return <const S extends RouteSchemas>(route: Route<C, S>): Route<C> => route as unknown as Route<C>;
}
