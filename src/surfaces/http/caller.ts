import type { FastifyReply, FastifyRequest } from "fastify";
import {
  errors as accessErrors,
  authenticate,
  authenticateCookie,
  bearerOf,
  countAdminWrite,
  type Principal,
  writeAudit,
} from "../../infrastructure/access/service.ts";
import type { Context } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { shownName } from "../../kernel/keyspace/index.ts";
import type { Caller, Route } from "../../kernel/route.ts";
import { describeError } from "./scrub.ts";

const callers = new WeakMap<FastifyRequest, Caller>();
const browsers = new WeakSet<FastifyRequest>();

/** Whether the dashboard called, rather than a program. */
export const isSignedInBrowser = (request: FastifyRequest): boolean => browsers.has(request);

/** Who calls; known once the route's door has let the request in. */
export function callerOf(request: FastifyRequest): Caller {
  return callers.get(request) ?? { sub: undefined, role: "anonymous", address: request.ip };
}

/**
 * The door of one route. It stands before the body is read, so strangers cost nothing: 401 without a credential that
 * works, 403 with one that does not reach here, 429 for an administrator in too great a hurry.
 */
export function doorOf(ctx: Context, route: Route<Context>) {
  const changes = route.method !== "GET";
  const enter = async (request: FastifyRequest): Promise<void> => {
    const principal = await principalOf(ctx, route, request, changes);
    if (!principal) return;
    if (principal.kind === "session") browsers.add(request);
    callers.set(request, { sub: principal.sub, role: principal.role, address: request.ip });
    if (route.access === "admin") {
      if (principal.role !== "admin") throw accessErrors.not_allowed();
      if (changes) await countAdminWrite(ctx, principal.sub);
    }
    if (route.access === "user" && principal.kind !== "user") throw accessErrors.not_allowed();
  };
  const isOpen = route.access === "public" || route.access === "token";
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    // Most who come to an open door show nothing, and need not wait.
    if (isOpen && request.headers.authorization === undefined) done();
    else enter(request).then(() => done(), done);
  };
}

async function principalOf(
  ctx: Context,
  route: Route<Context>,
  request: FastifyRequest,
  fresh: boolean,
): Promise<Principal | undefined> {
  if (route.access === "token") return undefined;
  const required = route.access !== "public";
  try {
    const bearer = bearerOf(request.headers.authorization);
    if (bearer === undefined) {
      const signedIn =
        route.access === "admin" ? await authenticateCookie(ctx, request, { changes: fresh }) : undefined;
      if (required && !signedIn) throw accessErrors.credential_missing();
      return signedIn;
    }
    return await authenticate(ctx, bearer, { fresh });
  } catch (error) {
    // A public route serves anybody, so a credential that no longer works only means that nobody is known.
    if (!required && error instanceof CarillonError && error.status === 401) return undefined;
    throw error;
  }
}

/**
 * Records a change that an administrator made. The change has happened, so a log that cannot be written does not turn
 * it into a failure; it is told to people instead.
 */
export async function recordAdminWrite(
  ctx: Context,
  route: Route<Context>,
  request: FastifyRequest,
  status: number,
): Promise<void> {
  const { sub, address } = callerOf(request);
  const action = `${route.method} ${route.path}`;
  const params = Object.entries((request.params ?? {}) as Record<string, unknown>);
  // A key in the path may be one whose name nobody should read.
  const target = params.map(([name, value]) => `${name}=${shownName(ctx.catalogue, String(value))}`).join(" ");
  const body = route.consumes === undefined || route.consumes === "json" ? (request.body ?? undefined) : undefined;
  try {
    await writeAudit(ctx, {
      admin: sub ?? "",
      action,
      target,
      detail: { status, request_id: request.id, address, query: request.query, body },
    });
  } catch (error) {
    ctx.log.error({ request_id: request.id, action, target, error: describeError(error) }, "audit row not written");
    ctx.alerts.warning("access:audit_not_written", `${action} ${target} by ${sub} is missing in the audit log`, {
      urgent: true,
    });
  }
}
