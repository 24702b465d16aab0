import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { RouteRequest, RouteSchemas } from "../../kernel/route.ts";
import { MessageAction } from "../../sandbox/actions.ts";
import { CHANNELS } from "../../sandbox/inbox.ts";
import { KnobPatch, KnobSettings } from "../../sandbox/knobs.ts";
import { isLoopback } from "../../sandbox/loopback.ts";
import { TOPIC_ARN } from "../../sandbox/sns.ts";
import { errors } from "./errors.ts";
import { detailOf, MessageDetail, MessageSummary, summaryOf } from "./message-view.ts";
import { sandboxOf } from "./service.ts";

const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip"];

/**
 * Only callers on this machine get through. A proxy on the machine would make strangers look local, and a web page that
 * a developer visits could call loopback addresses by a name of its own; both are told by their headers.
 */
function stageOf(ctx: Context, { caller, headers }: Pick<RouteRequest<RouteSchemas>, "caller" | "headers">) {
  const named = URL.canParse(`http://${headers.host}`) ? new URL(`http://${headers.host}`).hostname : "";
  const origin = headers.origin;
  const fromHere = origin === undefined || (URL.canParse(origin) && isLoopback(new URL(origin).hostname));
  const direct = FORWARDED.every((header) => headers[header] === undefined);
  if (!isLoopback(caller.address) || !direct || !isLoopback(named) || !fromHere) throw errors.sandbox_only_local();
  return sandboxOf(ctx);
}

function messageOf(ctx: Context, request: RouteRequest<{ params: typeof ById }>) {
  const sandbox = stageOf(ctx, request);
  const message = sandbox.inbox.get(request.params.id);
  if (!message) throw errors.sandbox_message_unknown();
  return { sandbox, message };
}

const ById = z.object({ id: z.string().max(64) });
const Filter = z.object({
  channel: z.enum(CHANNELS).optional(),
  to: z.string().max(320).optional().meta({ description: "A part of the receiver's address" }),
  subject: z.string().max(998).optional(),
  since: z.coerce.number().optional().meta({ description: "Unix seconds; only later ones" }),
});
const Answered = z.object({
  answered: z.number().nullable().meta({ description: "What the called webhook answered; null: nothing, or not yet" }),
});

export const routes = [
  route({
    method: "GET",
    path: "/api/1/sandbox",
    access: "public",
    summary: "Where the simulated providers answer",
    responses: {
      200: z.object({
        url: z.string(),
        smtp_url: z.string(),
        public_url: z.string(),
        twilio: z.object({ account_sid: z.string(), number: z.string(), stopped: z.array(z.string()) }),
        sns: z.object({
          topic_arn: z.string(),
          certificate_url: z.string(),
          confirmed: z.boolean(),
          lost: z.number().meta({ description: "Reports that nobody had subscribed to" }),
        }),
        messages: z.number(),
      }),
    },
    handle: (ctx, request) => {
      const { url, smtpUrl, publicUrl, twilio, ses, inbox } = stageOf(ctx, request);
      const { topic } = ses;
      return {
        status: 200,
        body: {
          url,
          smtp_url: smtpUrl,
          public_url: publicUrl,
          twilio: { account_sid: twilio.account.accountSid, number: twilio.number, stopped: [...twilio.stopped] },
          sns: {
            topic_arn: TOPIC_ARN,
            certificate_url: topic.certificateUrl,
            confirmed: topic.confirmed,
            lost: topic.lost,
          },
          messages: inbox.size,
        },
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/sandbox/messages",
    access: "public",
    summary: "What was sent to the simulated providers, newest first",
    schemas: { query: Filter.extend({ limit: z.coerce.number().int().min(1).max(1000).default(50) }) },
    responses: { 200: z.object({ items: z.array(MessageSummary) }) },
    handle: (ctx, request) => {
      const { inbox } = stageOf(ctx, request);
      return { status: 200, body: { items: inbox.list(request.query).map((message) => summaryOf(inbox, message)) } };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/sandbox/messages",
    access: "public",
    summary: "Empty the inbox",
    handle: (ctx, request) => {
      stageOf(ctx, request).inbox.clear();
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/sandbox/messages/wait",
    access: "public",
    summary: "The newest message that fits, as soon as there is one; 204 when there is none in time",
    schemas: { query: Filter.extend({ timeout: z.coerce.number().min(0).max(60).default(30) }) },
    responses: { 200: MessageDetail },
    handle: async (ctx, request) => {
      const { inbox } = stageOf(ctx, request);
      const { timeout, ...filter } = request.query;
      const message = await inbox.wait(filter, timeout);
      return message ? { status: 200, body: detailOf(inbox, message) } : { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/sandbox/messages/{id}",
    access: "public",
    summary: "One message with everything that happened to it",
    schemas: { params: ById },
    responses: { 200: MessageDetail },
    handle: (ctx, request) => {
      const { sandbox, message } = messageOf(ctx, request);
      return { status: 200, body: detailOf(sandbox.inbox, message) };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/sandbox/messages/{id}",
    access: "public",
    summary: "Take one message out of the inbox",
    schemas: { params: ById },
    handle: (ctx, request) => {
      const { sandbox, message } = messageOf(ctx, request);
      sandbox.inbox.remove(message.id);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/sandbox/messages/{id}/raw",
    access: "public",
    summary: "A mail as it was sent, to save and open in a mail program",
    schemas: { params: ById },
    handle: (ctx, request) => {
      const { message } = messageOf(ctx, request);
      if (!message.raw) throw errors.sandbox_message_unknown({ message: "Only mail has a raw form." });
      return {
        status: 200,
        body: message.raw,
        headers: {
          "content-type": "message/rfc822",
          "content-disposition": `attachment; filename="${message.id}.eml"`,
        },
      };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/sandbox/messages/{id}/actions",
    access: "public",
    summary: "Let something happen to a message: a reply, a delivery, a bounce, a complaint, a failure",
    schemas: { params: ById, body: MessageAction },
    responses: { 200: Answered },
    handle: async (ctx, request) => {
      const { sandbox, message } = messageOf(ctx, request);
      return { status: 200, body: await sandbox.act(message, request.body) };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/sandbox/sms/inbound",
    access: "public",
    summary: "A text from a person, as their provider would pass it on",
    schemas: {
      body: z.strictObject({
        from: z.string().regex(/^\+[1-9]\d{6,14}$/, "must be a number such as +15551234567"),
        to: z.string().max(20).optional(),
        body: z.string().max(1600),
      }),
    },
    responses: { 200: Answered },
    handle: async (ctx, request) => {
      const { twilio } = stageOf(ctx, request);
      return { status: 200, body: { answered: await twilio.inbound(request.body) } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/sandbox/knobs",
    access: "public",
    summary: "How the simulated providers misbehave right now",
    responses: { 200: KnobSettings },
    handle: (ctx, request) => ({ status: 200, body: stageOf(ctx, request).knobs.get() }),
  }),
  route({
    method: "PATCH",
    path: "/api/1/sandbox/knobs",
    access: "public",
    summary: "Change how they misbehave, from the next request on",
    schemas: { body: KnobPatch },
    responses: { 200: KnobSettings },
    handle: (ctx, request) => ({ status: 200, body: stageOf(ctx, request).knobs.patch(request.body) }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/sandbox/knobs",
    access: "public",
    summary: "Let everything work again",
    responses: { 200: KnobSettings },
    handle: (ctx, request) => ({ status: 200, body: stageOf(ctx, request).knobs.reset() }),
  }),
];
