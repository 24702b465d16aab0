import { z } from "zod";
import { route } from "../../domain.ts";
import { progressToken } from "../../infrastructure/jobs/service.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { TOUCH_CHANNELS } from "./entries.ts";
import { errors } from "./errors.ts";
import { BadFormat, MissingParameter } from "./format.ts";
import { sendTest } from "./jobs.ts";
import {
  EmailMessage,
  EventSlug,
  exampleOf,
  Messages,
  messagesEtag,
  PushMessage,
  SmsMessage,
  STRATEGIES,
  type TouchPoint,
} from "./point.ts";
import { changePoint, createPoint, deletePoint, listPoints, pointByUid } from "./point-store.ts";
import { Rendered, renderMessage } from "./render.ts";
import { planTest } from "./test-touch.ts";

const Schema = z.record(z.string(), z.unknown());
const WithUid = z.object({ uid: z.string().min(1).max(200) });
const Point = z.object({
  uid: z.string(),
  event_slug: z.string(),
  event_schema: Schema,
  selection_strategy: z.enum(STRATEGIES),
  messages: Messages,
  messages_etag: z.string().meta({ description: "Give it back when you change the messages" }),
  example: Schema.meta({ description: "Parameters made of the examples of the schema" }),
  created_at: z.number(),
});

const shown = ({ id: _, ...point }: TouchPoint) => ({
  ...point,
  messages_etag: messagesEtag(point.messages),
  example: exampleOf(point.event_schema),
});

const MESSAGES = { sms: SmsMessage, push: PushMessage, email: EmailMessage };
const Draft = z.strictObject({
  channel: z.enum(TOUCH_CHANNELS),
  message: z.union([SmsMessage, PushMessage, EmailMessage]),
  event_parameters: Schema.default({}),
});

/** What a message says with these parameters; its fault in words where it says nothing. */
function previewOf({ channel, message, event_parameters }: z.output<typeof Draft>) {
  const parsed = MESSAGES[channel].safeParse(message);
  if (!parsed.success) throw errors.parameters_mismatch({ message: `This is no message for ${channel}.` });
  try {
    return renderMessage(channel, parsed.data as never, event_parameters);
  } catch (error) {
    if (error instanceof BadFormat || error instanceof MissingParameter)
      throw errors.parameters_mismatch({ message: `The message cannot be made: ${error.message}.` });
    throw error;
  }
}

const Fields = z.strictObject({
  event_slug: EventSlug,
  event_schema: Schema.default({ type: "object", properties: {} }),
  selection_strategy: z.enum(STRATEGIES),
  messages: Messages,
});
const Page = z.object({ items: z.array(Point), next: z.string().nullable() });
const Wish = { after: z.string().max(255).optional(), limit: z.coerce.number().int().min(1).max(100).default(50) };

async function page(ctx: Context, wish: { after?: string | undefined; contains?: string | undefined; limit: number }) {
  const items = await listPoints(ctx, wish);
  const next = items.length === wish.limit ? items.at(-1)!.event_slug : null;
  return { status: 200, body: { items: items.map(shown), next } };
}

export const pointRoutes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/admin/touch_points",
    access: "admin",
    summary: "List touch points: the events that people are told about, and in which words",
    schemas: { query: z.object(Wish) },
    responses: { 200: Page },
    handle: (ctx, { query }) => page(ctx, query),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/touch_points/search",
    access: "admin",
    summary: "Search touch points by a part of their slug",
    schemas: { body: z.strictObject({ contains: z.string().max(255).default(""), ...Wish }) },
    responses: { 200: Page },
    handle: (ctx, { body }) => page(ctx, body),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/touch_points",
    access: "admin",
    summary: "Make a touch point",
    description:
      "Messages are formats: `Hello {name}`, `{event.title}`, `{{` for a brace. Each uses exactly the parameters that it declares, and the schema has them all.",
    schemas: { body: Fields },
    responses: { 201: Point },
    handle: async (ctx, { body }) => ({ status: 201, body: shown(await createPoint(ctx, body)) }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/touch_points/preview",
    access: "admin",
    summary: "What a message would say, before it is saved",
    description:
      "Of a mail it answers the subject and the parameters of its template; `POST /api/1/admin/email/templates/{slug}/preview` shows the whole mail.",
    schemas: { body: Draft },
    responses: {
      200: Rendered,
    },
    handle: (_ctx, { body }) => ({ status: 200, headers: { "cache-control": "no-store" }, body: previewOf(body) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/touch_points/{uid}",
    access: "admin",
    summary: "Read a touch point",
    schemas: { params: WithUid },
    responses: { 200: Point },
    handle: async (ctx, { params }) => ({ status: 200, body: shown(await pointByUid(ctx, params.uid)) }),
  }),
  route({
    method: "PATCH",
    path: "/api/1/admin/touch_points/{uid}",
    access: "admin",
    summary: "Change a touch point",
    description:
      "With `precondition.messages_etag` only if nobody changed the messages since you read them. A new strategy begins anew with everybody.",
    schemas: {
      params: WithUid,
      body: z.strictObject({
        ...Fields.partial().shape,
        event_schema: Schema.optional(),
        precondition: z.strictObject({ messages_etag: z.string() }).optional(),
      }),
    },
    responses: { 200: Point },
    async handle(ctx, { params, body: { precondition, ...changes } }) {
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
      return { status: 200, body: shown(await changePoint(ctx, params.uid, given, precondition?.messages_etag)) };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/touch_points/{uid}",
    access: "admin",
    summary: "Remove a touch point",
    description: "Touches of it that still wait fail; those that arrived stay in the history.",
    schemas: { params: WithUid },
    async handle(ctx, { params }) {
      await deletePoint(ctx, params.uid);
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/touch_points/{uid}/test",
    access: "admin",
    summary: "Send yourself a message of a touch point",
    description:
      "To at most three of your own addresses; nothing is remembered of it. With `progress_token` the job can be watched like any other: it tells the uids of the messages, for `carillon trace`.",
    schemas: {
      params: WithUid,
      body: z.strictObject({
        channel: z.enum(TOUCH_CHANNELS),
        event_parameters: Schema.default({}),
        message_uid: z.string().max(200).optional(),
      }),
    },
    responses: {
      202: z.object({ job_uid: z.string(), progress_token: z.string(), destinations: z.array(z.string()) }),
    },
    async handle(ctx, { params, body, caller }) {
      if (caller.sub === undefined) throw errors.no_destination();
      const wish = { touch_point_uid: params.uid, user_sub: caller.sub, ...body };
      const { addresses } = await planTest(ctx, wish);
      const job_uid = newUid("jp");
      await ctx.jobs.enqueue(sendTest, wish, { jobUid: job_uid });
      const progress_token = await progressToken(ctx, job_uid);
      return { status: 202, body: { job_uid, progress_token, destinations: addresses } };
    },
  }),
];
