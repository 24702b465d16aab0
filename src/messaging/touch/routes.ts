import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { adminRoutes, PageQuery } from "./admin-routes.ts";
import { campaignRoutes } from "./campaign-routes.ts";
import { TOUCH_CHANNELS, TOUCH_UID } from "./entries.ts";
import { errors } from "./errors.ts";
import { latestTouches } from "./listing.ts";
import { dropOrders, Order, prepareOrders, queueOrders } from "./order.ts";
import { pointRoutes } from "./point-routes.ts";
import { onceForKey } from "./requests.ts";
import { timelineOf } from "./timeline.ts";

const NO_STORE = { "cache-control": "no-store" };
const KEY = /^[\x21-\x7e]{1,255}$/;
/** What to call somebody, if they said so. */
const Named = { given_name: z.string().nullable(), family_name: z.string().nullable() };
const Sent = z.object({
  touches: z.array(
    z.object({
      uid: z.string().meta({ description: "Follow it with `GET /api/1/admin/touches/{uid}`" }),
      user_sub: z.string(),
      channel: z.enum(TOUCH_CHANNELS),
      codes: z.array(z.string()),
    }),
  ),
});
const DESCRIPTION =
  "Carillon finds the addresses and the words, makes the links, and follows each message to its end. Send an `Idempotency-Key` to be able to repeat the request for a week.";

/** The key of a request that may be repeated, if it has one. */
function keyOf(headers: Readonly<Record<string, unknown>>): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || !KEY.test(key))
    throw errors.invalid_touch({ message: "An Idempotency-Key has 1 to 255 printable characters." });
  return key;
}

async function send(
  ctx: Context,
  headers: Readonly<Record<string, unknown>>,
  orders: readonly z.output<typeof Order>[],
) {
  const touches = await onceForKey(ctx, keyOf(headers), orders, {
    prepare: (seed) => prepareOrders(ctx, orders, seed),
    send: (prepared, callUid) => queueOrders(ctx, orders, prepared, callUid),
    drop: (prepared) => dropOrders(ctx, prepared),
  });
  return { status: 202, body: { touches } };
}

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/admin/touches",
    access: "admin",
    summary: "Tell a person about an event",
    description: DESCRIPTION,
    schemas: { body: Order },
    responses: { 202: Sent },
    handle: (ctx, { headers, body }) => send(ctx, headers, [body]),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/touches/batch",
    access: "admin",
    summary: "Tell many people about events",
    description: `${DESCRIPTION} All of them are queued or none.`,
    schemas: { body: z.strictObject({ touches: z.array(Order).min(1).max(100) }) },
    responses: { 202: Sent },
    handle: (ctx, { headers, body }) => send(ctx, headers, body.touches),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/touches",
    access: "admin",
    summary: "The touches that reached somebody, the newest first",
    schemas: { query: PageQuery },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            uid: z.string(),
            user_sub: z.string(),
            ...Named,
            channel: z.enum(TOUCH_CHANNELS),
            event_slug: z.string().nullable(),
            destination: z.string(),
            created_at: z.number(),
          }),
        ),
        next: z.number().nullable(),
      }),
    },
    handle: async (ctx, { query }) => ({
      status: 200,
      headers: NO_STORE,
      body: await latestTouches(ctx, { before: query.before, limit: query.limit }),
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/touches/{uid}",
    access: "admin",
    summary: "What happened to a touch: queued, dispatched, accepted, delivered or failed, clicked",
    schemas: { params: z.object({ uid: z.string().regex(TOUCH_UID, "is not the uid of a touch") }) },
    responses: {
      200: z.object({
        uid: z.string(),
        subject: z
          .object({
            user_sub: z.string(),
            ...Named,
            channel: z.enum(TOUCH_CHANNELS),
            event_slug: z.string().nullable(),
            event_parameters: z.record(z.string(), z.unknown()).nullable(),
          })
          .nullable()
          .meta({ description: "Null until its trail or its arrival is written" }),
        arrivals: z.array(
          z.object({ destination: z.string(), message: z.record(z.string(), z.unknown()), created_at: z.number() }),
        ),
        codes: z.array(z.string()).meta({ description: "Of its links" }),
        state: z.string(),
        pending: z.boolean(),
        moments: z.array(
          z.object({
            at: z.number(),
            step: z.string(),
            message_uid: z.string().nullable(),
            provider: z.string().nullable(),
            detail: z.string().nullable(),
          }),
        ),
      }),
    },
    handle: async (ctx, { params }) => ({
      status: 200,
      headers: NO_STORE,
      body: await timelineOf(ctx, params.uid),
    }),
  }),
  ...campaignRoutes,
  ...pointRoutes,
  ...adminRoutes,
];
