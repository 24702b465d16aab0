import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { getUser, errors as userErrors } from "../../people/users/service.ts";
import { addEmails, addOwnEmail, addPhones } from "./addresses.ts";
import { EmailAddress } from "./email-address.ts";
import { errors } from "./errors.ts";
import { createPushToken } from "./jobs.ts";
import { keys, REGISTRATION_WINDOW } from "./keys.ts";
import { contactMethodLog, contactMethodsOf } from "./listing.ts";
import { CONTACT_UID, disablePushToken, removeContactMethods, switchNotifications } from "./notifications.ts";
import { personRoutes } from "./person-routes.ts";
import { parsePhoneNumber } from "./phone-number.ts";
import { PUSH_TOKEN } from "./push-tokens.ts";
import { Cursor, pageOf, suppressionRoutes } from "./suppression-routes.ts";
import { CHANNELS, LOG_ACTIONS, PLATFORMS } from "./tables.ts";
import { noteSettingsImproved, timePromptOf } from "./time-prompt.ts";

const PushToken = z
  .string()
  .min(20)
  .max(63)
  .regex(PUSH_TOKEN, "is not a push token of Expo")
  .meta({ description: "As the app got it: `ExponentPushToken[…]`" });
const WithUid = z.object({ uid: z.string().regex(CONTACT_UID, "is not the uid of a contact method") });
const WithSub = z.object({ sub: z.string().regex(/^[A-Za-z0-9._|@+-]{1,128}$/, "is not a sub") });

const Method = z.object({ uid: z.string(), receives_notifications: z.boolean(), created_at: z.number() });
const Address = Method.extend({
  value: z.string(),
  verified: z.boolean(),
  suppressed: z.boolean().meta({ description: "Nothing is sent to it, whoever has it" }),
});
const ContactMethods = z.object({
  emails: z.array(Address),
  phones: z.array(Address),
  push_tokens: z.array(
    Method.extend({
      platform: z.enum(PLATFORMS),
      last_seen_at: z.number(),
      last_confirmed_at: z.number().nullable().meta({ description: "When a notification last reached the device" }),
    }),
  ),
});
const Logged = z.object({
  uid: z.string(),
  channel: z.enum(CHANNELS),
  identifier: z.string(),
  action: z.enum(LOG_ACTIONS),
  reason: z.record(z.string(), z.unknown()),
  created_at: z.number(),
});

const Shown = z.enum(["email", "sms", "push"]);
const TimePrompt = z.object({
  wants_notification_time_prompt: z.boolean(),
  channels: z
    .array(Shown)
    .meta({ description: "Your reminders whose times you chose before there was more to choose" }),
  potential_channels: z.array(Shown).meta({ description: "On which you can be reached" }),
});

const registrations = counterLimit({
  reason: "push_token_registrations",
  limit: 60,
  window: REGISTRATION_WINDOW,
  mode: "fixed",
});

async function requireUser(ctx: Context, sub: string): Promise<void> {
  if (!(await getUser(ctx, sub))) throw userErrors.user_not_found();
}

async function switchOwn(ctx: Context, userSub: string, uid: string, enabled: boolean) {
  const found = await switchNotifications(ctx, [{ userSub, uid, enabled }]);
  if (found.size === 0) throw errors.contact_method_not_found();
  return { status: 204 };
}

export const routes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/users/me/contact_methods",
    access: "user",
    summary: "List how you can be reached",
    responses: { 200: ContactMethods },
    handle: async (ctx, { caller }) => ({
      status: 200,
      headers: { "cache-control": "no-store" },
      body: await contactMethodsOf(ctx, caller.sub ?? ""),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/users/me/emails",
    access: "user",
    summary: "Add an email address",
    description: "It waits unverified, and no notification is sent to it, until you prove that it is yours.",
    schemas: { body: z.strictObject({ email: EmailAddress }) },
    responses: { 201: z.object({ uid: z.string(), email: z.string(), created_at: z.number() }) },
    handle: async (ctx, { caller, body }) => ({
      status: 201,
      body: await addOwnEmail(ctx, caller.sub ?? "", body.email),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/users/me/contact_methods/{uid}",
    access: "user",
    summary: "Remove a contact method",
    schemas: { params: WithUid },
    async handle(ctx, { caller, params }) {
      const gone = await removeContactMethods(ctx, [{ userSub: caller.sub ?? "", uid: params.uid }]);
      if (gone.size === 0) throw errors.contact_method_not_found();
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/users/me/contact_methods/{uid}/notifications",
    access: "user",
    summary: "Switch notifications to a contact method on or off",
    schemas: { params: WithUid, body: z.strictObject({ enabled: z.boolean() }) },
    handle: (ctx, { caller, params, body }) => switchOwn(ctx, caller.sub ?? "", params.uid, body.enabled),
  }),
  route({
    method: "POST",
    path: "/api/1/users/me/contact_methods/{uid}/disable_notifications",
    access: "user",
    summary: "Switch notifications to a contact method off",
    schemas: { params: WithUid },
    handle: (ctx, { caller, params }) => switchOwn(ctx, caller.sub ?? "", params.uid, false),
  }),
  route({
    method: "POST",
    path: "/api/1/notifications/push/tokens/",
    access: "user",
    summary: "Register the push token of a device",
    description: "Send it at every start of the app: a token that is known is refreshed, one of somebody else moves.",
    schemas: { body: z.strictObject({ push_token: PushToken, platform: z.enum(PLATFORMS) }) },
    async handle(ctx, { caller, body }) {
      const { push_token: expo_push_token, platform } = body;
      const user_sub = caller.sub ?? "";
      const counted = await attempt(ctx, [registrations(keys.tokenRegistrations({ user_sub }))]);
      if (!counted.allowed) throw errors.too_many_registrations({ retryAfter: Math.ceil(counted.retryAfter) });
      await ctx.jobs.enqueue(createPushToken, { user_sub, expo_push_token, platform });
      return { status: 202, body: {} };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/notifications/push/tokens/disable",
    access: "user",
    summary: "Switch notifications to a device off",
    schemas: { body: z.strictObject({ push_token: PushToken }) },
    async handle(ctx, { caller, body }) {
      await disablePushToken(ctx, caller.sub ?? "", body.push_token);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/users/{sub}/contact_methods",
    access: "admin",
    summary: "List how a user can be reached",
    schemas: { params: WithSub },
    responses: { 200: ContactMethods },
    async handle(ctx, { params }) {
      await requireUser(ctx, params.sub);
      return { status: 200, body: await contactMethodsOf(ctx, params.sub) };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/users/{sub}/contact_methods",
    access: "admin",
    summary: "Say how a user can be reached",
    description:
      "For addresses that your application knows, and has verified if you say so. What is known already stays as its owner left it, and can only become verified.",
    schemas: {
      params: WithSub,
      body: z.strictObject({
        emails: z
          .array(z.strictObject({ email: EmailAddress, verified: z.boolean() }))
          .max(20)
          .default([]),
        phones: z
          .array(
            z.strictObject({
              phone_number: z
                .string()
                .min(1)
                .max(64)
                .meta({ description: "With the code of its country: +1 415 555 0132" }),
              verified: z.boolean(),
              receives_notifications: z.boolean().meta({ description: "Whether the person wants texts at it" }),
            }),
          )
          .max(20)
          .default([]),
        begins: z
          .enum(["account_created", "klaviyo"])
          .optional()
          .meta({ description: "Why reminders begin with these: the account is new, or an older list brings them" }),
      }),
    },
    responses: { 200: ContactMethods },
    async handle(ctx, { params: { sub: userSub }, body }) {
      const phones = body.phones.map(({ phone_number, verified, receives_notifications }) => ({
        userSub,
        verified,
        phoneNumber: parsePhoneNumber(ctx, phone_number),
        receivesNotifications: receives_notifications,
        cause: "migration" as const,
        begins: body.begins,
      }));
      await requireUser(ctx, userSub);
      await addEmails(
        ctx,
        body.emails.map((address) => ({ ...address, userSub, cause: "migration", begins: body.begins })),
      );
      await addPhones(ctx, phones);
      return { status: 200, body: await contactMethodsOf(ctx, userSub) };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/users/{sub}/contact_method_log",
    access: "admin",
    summary: "Read what happened to a user's contact methods, the newest first",
    schemas: {
      params: WithSub,
      query: z.object({ after: Cursor, limit: z.coerce.number().int().min(1).max(100).default(50) }),
    },
    responses: { 200: pageOf(Logged) },
    async handle(ctx, { params, query }) {
      await requireUser(ctx, params.sub);
      return { status: 200, body: await contactMethodLog(ctx, params.sub, query) };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/users/me/wants_notification_time_prompt",
    access: "user",
    summary: "Ask whether to show the choice of reminder times again",
    responses: { 200: TimePrompt },
    handle: async (ctx, { caller }) => ({
      status: 200,
      headers: { "cache-control": "no-store" },
      body: await timePromptOf(ctx, caller.sub ?? ""),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/daily_reminder_settings_improved",
    access: "admin",
    summary: "Have everybody asked for their reminder times again",
    responses: { 200: z.object({ improved_at: z.number() }) },
    handle: async (ctx) => ({ status: 200, body: { improved_at: await noteSettingsImproved(ctx) } }),
  }),
  ...personRoutes,
  ...suppressionRoutes,
];
