import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { statisticsSettings } from "../../mechanisms/dated-counters/index.ts";
import { writeAudit } from "./audit.ts";
import { isFromOwnPage, sessionCookie, sessionSecretOf } from "./cookie.ts";
import { errors } from "./errors.ts";
import { csrfTokenOf, listSessions, revokeSession, verifySession } from "./sessions.ts";
import { settings } from "./settings.ts";
import { exchangeSignInLink } from "./sign-in.ts";

const Session = z.object({
  uid: z.string(),
  label: z.string(),
  address: z.string(),
  user_agent: z.string(),
  created_at: z.number(),
  expires_at: z.number(),
  last_used_at: z.number().meta({ description: "Exact to a minute" }),
});

const Standing = z.object({
  session: Session.nullable().meta({ description: "null when no browser is signed in by a cookie" }),
  csrf_token: z.string().nullable().meta({ description: "To be sent as `X-CSRF-Token` with every change" }),
  statistics_timezone: z.string(),
  environment: z.enum(["development", "production"]),
  now: z.number().meta({ description: "The server's clock, in unix seconds" }),
});

/** What the server's own request tells besides its headers. */
interface Arrival {
  readonly protocol: string;
  readonly host: string;
}

const PATH = "/api/1/admin/session";
const GONE = { maxAge: 0 };

function surroundings(ctx: Context) {
  return {
    statistics_timezone: ctx.config.get(statisticsSettings.timezone),
    environment: ctx.config.get(settings.environment),
    now: ctx.clock.now(),
  };
}

export const sessionRoutes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: PATH,
    access: "public",
    summary: "Sign a browser in with the secret of a sign-in link",
    description: "The link works once. The answer sets a cookie that admin routes take in place of an admin token.",
    schemas: { body: z.strictObject({ token: z.string().min(1).max(200) }) },
    responses: { 201: Standing },
    async handle(ctx, { body, headers, caller, raw }) {
      const { protocol, host } = raw as Arrival;
      if (headers.origin !== undefined && !isFromOwnPage(headers, host)) throw errors.foreign_page();
      const visitor = { address: caller.address, userAgent: headers["user-agent"] ?? "" };
      const { session, secret } = await exchangeSignInLink(ctx, body.token, visitor);
      const { uid, address, user_agent } = session;
      await writeAudit(ctx, { admin: uid, action: `POST ${PATH}`, target: uid, detail: { address, user_agent } });
      const cookie = sessionCookie(secret, {
        maxAge: session.expires_at - ctx.clock.now(),
        secure: protocol === "https",
      });
      return {
        status: 201,
        headers: { "set-cookie": cookie },
        body: { session, csrf_token: csrfTokenOf(ctx, secret), ...surroundings(ctx) },
      };
    },
  }),
  route({
    method: "GET",
    path: PATH,
    // A page that asks whether somebody is signed in is no intruder when nobody is.
    access: "public",
    summary: "Who is signed in here, and what a page needs to make changes",
    responses: { 200: Standing },
    async handle(ctx, { headers }) {
      const secret = headers.authorization === undefined ? sessionSecretOf(headers) : undefined;
      const session = secret === undefined ? undefined : await verifySession(ctx, secret);
      const csrf_token = session && secret ? csrfTokenOf(ctx, secret) : null;
      return { status: 200, body: { session: session ?? null, csrf_token, ...surroundings(ctx) } };
    },
  }),
  route({
    method: "DELETE",
    path: PATH,
    access: "admin",
    summary: "Sign this browser out",
    async handle(ctx, { caller, raw }) {
      if (caller.sub !== undefined) await revokeSession(ctx, caller.sub);
      const secure = (raw as Arrival).protocol === "https";
      return { status: 204, headers: { "set-cookie": sessionCookie("", { ...GONE, secure }) } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/sessions",
    access: "admin",
    summary: "Browsers that are signed in to the dashboard, the newest first",
    responses: { 200: z.object({ items: z.array(Session) }) },
    handle: async (ctx) => ({ status: 200, body: { items: await listSessions(ctx) } }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/sessions/{uid}",
    access: "admin",
    summary: "Sign a browser out, at once and everywhere",
    schemas: { params: z.object({ uid: z.string().max(64) }) },
    async handle(ctx, { params }) {
      if (!(await revokeSession(ctx, params.uid))) throw errors.session_not_found();
      return { status: 204 };
    },
  }),
];
