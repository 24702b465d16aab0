import type { IncomingHttpHeaders } from "node:http";
import type { Context } from "../../jobs/context.ts";
import type { Principal } from "./bearer.ts";
import { errors } from "./errors.ts";
import { isCsrfTokenOf, verifySession } from "./sessions.ts";

const NAME = "carillon_session";
/** The cookie goes to admin routes and nowhere else. */
const PATH = "/api/1/admin";
export const CSRF_HEADER = "x-csrf-token";

/** Scripts cannot read it, other sites cannot make a browser send it. */
export function sessionCookie(secret: string, options: { readonly maxAge: number; readonly secure: boolean }): string {
  const flags = ["HttpOnly", "SameSite=Strict", ...(options.secure ? ["Secure"] : [])];
  return `${NAME}=${secret}; Path=${PATH}; Max-Age=${Math.floor(options.maxAge)}; ${flags.join("; ")}`;
}

export function sessionSecretOf(headers: IncomingHttpHeaders): string | undefined {
  for (const pair of (headers.cookie ?? "").split(";")) {
    const [name, value] = pair.trim().split("=");
    if (name === NAME && value) return value;
  }
  return undefined;
}

/** Whether a page of this very server sent the request. Browsers name the origin with every change; a foreign page cannot. */
export function isFromOwnPage(headers: IncomingHttpHeaders, host: string): boolean {
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return false;
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
}

/**
 * Who stands behind the cookie of a signed-in browser; undefined without one. A browser sends it along whoever asked it to,
 * so a change counts only from a page of this server that shows its token.
 */
export async function authenticateCookie(
  ctx: Pick<Context, "redis" | "clock" | "config">,
  request: { readonly headers: IncomingHttpHeaders; readonly host: string },
  options: { readonly changes: boolean },
): Promise<Principal | undefined> {
  const secret = sessionSecretOf(request.headers);
  if (secret === undefined) return undefined;
  const session = await verifySession(ctx, secret);
  if (!session) throw errors.session_ended();
  if (options.changes) {
    if (!isFromOwnPage(request.headers, request.host))
      throw errors.foreign_page({ message: "The change was not sent by a page of this server." });
    if (!isCsrfTokenOf(ctx, secret, String(request.headers[CSRF_HEADER] ?? "")))
      throw errors.foreign_page({ message: `The change came without the ${CSRF_HEADER} of its session.` });
  }
  return { kind: "session", sub: session.uid, role: "admin" };
}
