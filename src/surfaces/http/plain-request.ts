import type { FastifyRequest } from "fastify";
import type { RouteRequest, RouteSchemas } from "../../kernel/route.ts";
import { callerOf } from "./caller.ts";

/** A request as routes see it that are called by the thousand: what a handler does not ask for is not worked out. */
export class PlainRequest implements RouteRequest<RouteSchemas> {
  readonly raw: FastifyRequest;
  readonly #body: unknown;

  /** A body of its own, where it is not the one that was parsed. */
  constructor(request: FastifyRequest, body: unknown = request.body) {
    this.raw = request;
    this.#body = body;
  }

  get params() {
    return this.raw.params as undefined;
  }

  get query() {
    return this.raw.query as undefined;
  }

  get body() {
    return this.#body as undefined;
  }

  get headers() {
    return this.raw.headers;
  }

  get id() {
    return this.raw.id;
  }

  get caller() {
    return callerOf(this.raw);
  }
}
