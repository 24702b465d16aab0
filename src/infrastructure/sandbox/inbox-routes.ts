import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { RouteRequest } from "../../kernel/route.ts";
import { MessageAction } from "../../sandbox/actions.ts";
import { CHANNELS } from "../../sandbox/inbox.ts";
import { errors } from "./errors.ts";
import { stageOf } from "./local-callers.ts";
import { detailOf, MessageDetail, MessageSummary, summaryOf } from "./message-view.ts";

const ById = z.object({ id: z.string().max(64) });
const Filter = z.object({
  channel: z.enum(CHANNELS).optional(),
  to: z.string().max(320).optional().meta({ description: "A part of the receiver's address" }),
  subject: z.string().max(998).optional(),
  since: z.coerce.number().optional().meta({ description: "Unix seconds; only later ones" }),
});
export const Answered = z.object({
  answered: z.number().nullable().meta({ description: "What the called webhook answered; null: nothing, or not yet" }),
});

/** A mail may say anything, but runs nothing, asks nobody but for pictures, and is shown by pages of this house only. */
const MAIL_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "sandbox allow-popups allow-popups-to-escape-sandbox",
    "default-src 'none'",
    "img-src https: data:",
    "style-src 'unsafe-inline'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join("; "),
  "x-frame-options": "SAMEORIGIN",
};

function messageOf(ctx: Context, request: RouteRequest<{ params: typeof ById }>) {
  const sandbox = stageOf(ctx, request);
  const message = sandbox.inbox.get(request.params.id);
  if (!message) throw errors.sandbox_message_unknown();
  return { sandbox, message };
}

/** What was sent, below a path; it has two, because tests of other programs know it by the short one. */
export const inboxRoutes = (base: string) => [
  route({
    method: "GET",
    path: base,
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
    path: base,
    access: "public",
    summary: "Empty the inbox",
    handle: (ctx, request) => {
      stageOf(ctx, request).inbox.clear();
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: `${base}/wait`,
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
    path: `${base}/{id}`,
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
    path: `${base}/{id}`,
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
    path: `${base}/{id}/raw`,
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
    method: "GET",
    path: `${base}/{id}/html`,
    access: "public",
    summary: "The HTML of a mail, for a frame in which nothing runs",
    schemas: { params: ById },
    handle: (ctx, request) => {
      const { message } = messageOf(ctx, request);
      const html = message.mail?.html;
      if (!html) throw errors.sandbox_message_unknown({ message: "The message has no HTML." });
      // Links of a mail open beside it: inside the frame most pages refuse to be shown.
      return { status: 200, body: `<base target="_blank">${html}`, headers: MAIL_HEADERS };
    },
  }),
  route({
    method: "POST",
    path: `${base}/{id}/actions`,
    access: "public",
    summary: "Let something happen to a message: a reply, a delivery, a bounce, a complaint, a failure",
    schemas: { params: ById, body: MessageAction },
    responses: { 200: Answered },
    handle: async (ctx, request) => {
      const { sandbox, message } = messageOf(ctx, request);
      return { status: 200, body: await sandbox.act(message, request.body) };
    },
  }),
];
