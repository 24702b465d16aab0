import { z } from "zod";
import { route } from "../../domain.ts";
import { KNOB_OWNERS, KnobPatch, KnobSettings } from "../../sandbox/knobs.ts";
import { TOPIC_ARN } from "../../sandbox/sns.ts";
import { errors } from "./errors.ts";
import { Answered, inboxRoutes } from "./inbox-routes.ts";
import { canOpen, stageOf } from "./local-callers.ts";
import { recipientRoutes } from "./recipient-routes.ts";

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
    path: "/api/1/admin/sandbox",
    access: "admin",
    summary:
      "Whether the caller could open the inbox of simulated providers: they run here, and the caller is on this machine",
    responses: { 200: z.object({ can_open: z.boolean() }) },
    handle: (ctx, request) => ({ status: 200, body: { can_open: canOpen(ctx, request) } }),
  }),
  route({
    method: "GET",
    path: "/sandbox/inbox",
    access: "public",
    summary: "Where the page of the inbox was before: leads to where it is now",
    handle: (ctx, request) => {
      stageOf(ctx, request);
      return { status: 301, headers: { location: "/sandbox" }, body: "" };
    },
  }),
  ...inboxRoutes("/api/1/sandbox/messages"),
  ...inboxRoutes("/sandbox/api/inbox"),
  ...recipientRoutes,
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
  route({
    method: "PUT",
    path: "/sandbox/api/{provider}/faults",
    access: "public",
    summary: "Set how one of them misbehaves; what is not named works again",
    schemas: {
      params: z.object({ provider: z.enum(KNOB_OWNERS) }),
      body: z.record(z.string(), z.unknown()),
    },
    responses: { 200: KnobSettings },
    handle: (ctx, request) => {
      const { knobs } = stageOf(ctx, request);
      const { success, data, error } = KnobPatch.safeParse({ [request.params.provider]: request.body });
      if (!success) throw errors.sandbox_knob_unknown({ message: z.prettifyError(error) });
      return { status: 200, body: knobs.replace(data) };
    },
  }),
];
