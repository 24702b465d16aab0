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
  /**
   * `multipart` leaves the body to the handler, which reads parts from `request.raw`. `webhook` is for the signed posts of
   * third parties, which come by the thousand: its handler takes them with `receivedOf` and knows the sender by its
   * signature, so neither credentials nor foreign pages are looked at, and what went well is measured but not logged.
   * `nothing` is for quiet routes that ignore whatever body comes along.
   */
  readonly consumes?: "json" | "multipart" | "raw" | "webhook" | "nothing";
  /**
   * Requests come by the thousand: what went well is measured but not logged, and its answer is written as it is, without
   * being checked. Bodies are JSON, or are not read (`nothing`).
   */
  readonly quiet?: boolean;
  handle(ctx: C, request: RouteRequest<S>): Promise<RouteReply> | RouteReply;
}

/** A webhook as it came. */
export interface ReceivedWebhook {
  readonly headers: IncomingHttpHeaders;
  /** Byte for byte; or that it is longer than the route takes, or broke off, and was not read to its end. */
  readonly body: Buffer | "too_large" | "broken";
  /** Path and query, as asked for. */
  readonly path: string;
}

/** What a route that consumes webhooks was sent. */
export function receivedOf({ headers, body, raw }: Pick<RouteRequest<RouteSchemas>, "headers" | "body" | "raw">) {
  const came = body as unknown as ReceivedWebhook["body"] | undefined;
  const { url: path } = raw as { readonly url: string };
  return { headers, body: came ?? NO_BYTES, path } satisfies ReceivedWebhook;
}

const NO_BYTES = Buffer.alloc(0);

/** Declares a route; the handler sees parsed values of exactly its schemas' types. */
export function defineRoute<C>() {
  return <const S extends RouteSchemas>(route: Route<C, S>): Route<C> => route as unknown as Route<C>;
}
