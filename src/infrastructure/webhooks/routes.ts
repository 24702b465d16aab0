import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { EndpointAddress } from "./endpoint-address.ts";
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  MOST_ENDPOINTS,
  readEndpoint,
  rotateSecret,
} from "./endpoints.ts";
import { EVENT_TYPES } from "./event.ts";
import { listMessages, readMessage, resendMessage, sendTest } from "./messages.ts";
import { DISABLED_REASONS, MESSAGE_STATUSES } from "./tables.ts";

const NO_STORE = { "cache-control": "no-store" };
const WithUid = z.object({ uid: z.string().min(1).max(200) });
const Time = z.number().nullable();

const Fields = {
  url: EndpointAddress.meta({ description: "Begins with https://; without TLS only to the machine itself" }),
  types: z
    .array(z.enum(EVENT_TYPES))
    .min(1)
    .transform((types) => [...new Set(types)]),
  description: z.string().max(500),
};

const Endpoint = z.object({
  uid: z.string(),
  url: z.string(),
  description: z.string(),
  types: z.array(z.enum(EVENT_TYPES)),
  enabled: z.boolean(),
  disabled_reason: z
    .enum(DISABLED_REASONS)
    .nullable()
    .meta({ description: "`gone`: it answered 410; `failing`: it only failed for days" }),
  disabled_at: Time,
  failing_since: Time,
  previous_secret_until: Time.meta({ description: "Until when the secret before the present one signs too" }),
  created_at: z.number(),
});
const EndpointWithSecret = Endpoint.extend({
  secret: z.string().meta({ description: "`whsec_…`: in this answer and in no later one" }),
});

const Message = z.object({
  uid: z.string().meta({ description: "The `webhook-id` of its requests" }),
  endpoint_uid: z.string(),
  type: z.string(),
  status: z.enum(MESSAGE_STATUSES),
  attempts: z.int().min(0),
  next_attempt_at: Time,
  last_attempt_at: Time,
  last_status: z.int().nullable(),
  last_error: z.string().nullable(),
  delivered_at: Time,
  created_at: z.number(),
});
const Queued = z.object({ uid: z.string().meta({ description: "The message that is on its way" }) });

const given = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]: Exclude<T[Name], undefined>;
  };

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/admin/webhooks",
    access: "admin",
    summary: "Make a webhook endpoint: an address of yours that hears of events",
    description: "Requests are signed as Standard Webhooks says. Keep the secret: it is not shown again.",
    schemas: { body: z.strictObject({ ...Fields, description: Fields.description.default("") }) },
    responses: { 201: EndpointWithSecret },
    handle: async (ctx, { body }) => ({ status: 201, headers: NO_STORE, body: await createEndpoint(ctx, body) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/webhooks",
    access: "admin",
    summary: `List webhook endpoints; there are at most ${MOST_ENDPOINTS}`,
    responses: { 200: z.object({ items: z.array(Endpoint) }) },
    handle: async (ctx) => ({ status: 200, headers: NO_STORE, body: { items: await listEndpoints(ctx) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/webhooks/{uid}",
    access: "admin",
    summary: "Read a webhook endpoint",
    schemas: { params: WithUid },
    responses: { 200: Endpoint },
    handle: async (ctx, { params }) => ({
      status: 200,
      headers: NO_STORE,
      body: await readEndpoint(ctx, params.uid),
    }),
  }),
  route({
    method: "PATCH",
    path: "/api/1/admin/webhooks/{uid}",
    access: "admin",
    summary: "Change a webhook endpoint, or switch it on or off",
    description: "While it is off it hears of nothing, and nothing is kept for it.",
    schemas: {
      params: WithUid,
      body: z.strictObject({
        url: Fields.url.optional(),
        types: Fields.types.optional(),
        description: Fields.description.optional(),
        enabled: z.boolean().optional(),
      }),
    },
    responses: { 200: Endpoint },
    handle: async (ctx, { params, body }) => ({
      status: 200,
      headers: NO_STORE,
      body: await changeEndpoint(ctx, params.uid, given(body)),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/webhooks/{uid}",
    access: "admin",
    summary: "Remove a webhook endpoint with its messages",
    schemas: { params: WithUid },
    async handle(ctx, { params }) {
      await deleteEndpoint(ctx, params.uid);
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/webhooks/{uid}/rotate_secret",
    access: "admin",
    summary: "Give a webhook endpoint a new secret",
    description:
      "Requests carry a signature for each valid secret, so the receiver can change over while both are. Say 0 if the old one became known to others.",
    schemas: {
      params: WithUid,
      body: z.strictObject({
        keep_previous_for: z.number().min(0).max(604_800).default(86_400).meta({ description: "seconds" }),
      }),
    },
    responses: { 200: EndpointWithSecret },
    handle: async (ctx, { params, body }) => ({
      status: 200,
      headers: NO_STORE,
      body: await rotateSecret(ctx, params.uid, body.keep_previous_for),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/webhooks/{uid}/test",
    access: "admin",
    summary: "Send an event of type `webhook.test` to an endpoint",
    schemas: { params: WithUid },
    responses: { 202: Queued },
    handle: async (ctx, { params }) => ({ status: 202, body: { uid: await sendTest(ctx, params.uid) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/webhooks/{uid}/messages",
    access: "admin",
    summary: "List what an endpoint was told or will be, the newest first",
    schemas: {
      params: WithUid,
      query: z.object({
        status: z.enum(MESSAGE_STATUSES).optional(),
        type: z.string().max(100).optional(),
        before: z.coerce.number().int().optional(),
        limit: z.coerce.number().int().min(1).max(100).default(50),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(Message),
        next: z.int().nullable().meta({ description: "Pass it as `before` for the next page; null at the end" }),
      }),
    },
    handle: async (ctx, { params, query: { status, type, before, limit } }) => ({
      status: 200,
      headers: NO_STORE,
      body: await listMessages(ctx, params.uid, { status, type, before, limit }),
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/webhook_messages/{uid}",
    access: "admin",
    summary: "Read a webhook message with what it says",
    schemas: { params: WithUid },
    responses: { 200: Message.extend({ payload: z.record(z.string(), z.unknown()) }) },
    handle: async (ctx, { params }) => ({ status: 200, headers: NO_STORE, body: await readMessage(ctx, params.uid) }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/webhook_messages/{uid}/resend",
    access: "admin",
    summary: "Send a webhook message once more, whatever became of it",
    schemas: { params: WithUid },
    responses: { 202: Queued },
    async handle(ctx, { params }) {
      await resendMessage(ctx, params.uid);
      return { status: 202, body: { uid: params.uid } };
    },
  }),
];
