import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { calendarOf, isoDate, parseIsoDate } from "../../mechanisms/dated-counters/index.ts";
import { errors } from "./errors.ts";
import { PREFERENCES, preferenceCounts, preferenceHistory } from "./preferences.ts";
import {
  createUser,
  deleteUser,
  getUser,
  listUsers,
  ROLES,
  revokeTokens,
  Timezone,
  type User,
  type UserHooks,
  updateUser,
} from "./service.ts";
import { timezoneLog } from "./timezone-log.ts";

/** Days of changes that are shown unless asked otherwise, and at most. */
const SPAN = 30;
const LONGEST_SPAN = 731;

const Sub = z
  .string()
  .regex(/^[A-Za-z0-9._|@+-]{1,128}$/, "may hold letters, digits and . _ | @ + - only, at most 128")
  .meta({ description: "The user's sub" });
const Name = z.string().trim().min(1).max(100);
const WithSub = z.object({ sub: Sub });

const Profile = z.object({
  sub: z.string(),
  uuid: z.uuid(),
  role: z.enum(ROLES),
  timezone: z.string().nullable(),
  given_name: z.string().nullable(),
  family_name: z.string().nullable(),
  created_at: z.number().meta({ description: "Unix seconds" }),
});

const OwnChanges = z.strictObject({
  timezone: Timezone.optional(),
  given_name: Name.nullish(),
  family_name: Name.nullish(),
});
const AdminChanges = OwnChanges.extend({ role: z.enum(ROLES).optional() });

/** What leaves the server of a row; the numeric id stays. */
function profile(user: User): z.input<typeof Profile> {
  const { sub, uuid, role, timezone, given_name, family_name, created_at } = user;
  return { sub, uuid, role, timezone, given_name, family_name, created_at };
}

function found(user: User | undefined): User {
  if (!user) throw errors.user_not_found();
  return user;
}

export function routes(hooks: () => UserHooks): readonly Route<Context>[] {
  return [
    route({
      method: "POST",
      path: "/api/1/admin/users",
      access: "admin",
      summary: "Create a user",
      schemas: { body: AdminChanges.extend({ sub: Sub.optional() }).prefault({}) },
      responses: { 201: Profile },
      handle: async (ctx, { body }) => ({ status: 201, body: profile(await createUser(ctx, hooks(), body)) }),
    }),
    route({
      method: "GET",
      path: "/api/1/admin/users",
      access: "admin",
      summary: "List users in order of arrival",
      schemas: {
        query: z.object({
          after: z.uuid().optional().meta({ description: "`next` of the page before" }),
          limit: z.coerce.number().int().min(1).max(200).default(50),
          role: z.enum(ROLES).optional(),
        }),
      },
      responses: { 200: z.object({ items: z.array(Profile), next: z.uuid().nullable() }) },
      handle: async (ctx, { query }) => {
        const page = await listUsers(ctx, query);
        return { status: 200, body: { items: page.users.map(profile), next: page.next ?? null } };
      },
    }),
    route({
      method: "GET",
      path: "/api/1/admin/users/{sub}",
      access: "admin",
      summary: "Read a user",
      schemas: { params: WithSub },
      responses: { 200: Profile },
      handle: async (ctx, { params }) => ({ status: 200, body: profile(found(await getUser(ctx, params.sub))) }),
    }),
    route({
      method: "PATCH",
      path: "/api/1/admin/users/{sub}",
      access: "admin",
      summary: "Change a user",
      description: "A change of role ends every token that was issued to the user before it.",
      schemas: { params: WithSub, body: AdminChanges },
      responses: { 200: Profile },
      handle: async (ctx, { params, body }) => ({
        status: 200,
        body: profile(await updateUser(ctx, params.sub, body)),
      }),
    }),
    route({
      method: "DELETE",
      path: "/api/1/admin/users/{sub}",
      access: "admin",
      summary: "Delete a user and everything that belongs to them",
      schemas: { params: WithSub },
      handle: async (ctx, { params }) => {
        await deleteUser(ctx, hooks(), params.sub);
        return { status: 204 };
      },
    }),
    route({
      method: "POST",
      path: "/api/1/admin/users/{sub}/revoke_tokens",
      access: "admin",
      summary: "End every token issued to a user so far",
      schemas: { params: WithSub },
      handle: async (ctx, { params }) => {
        await revokeTokens(ctx, params.sub);
        return { status: 204 };
      },
    }),
    route({
      method: "GET",
      path: "/api/1/users/me",
      access: "user",
      summary: "Read your own profile",
      responses: { 200: Profile },
      handle: async (ctx, { caller }) => ({ status: 200, body: profile(found(await getUser(ctx, caller.sub ?? ""))) }),
    }),
    route({
      method: "PATCH",
      path: "/api/1/users/me",
      access: "user",
      summary: "Change your own name or timezone",
      schemas: { body: OwnChanges },
      responses: { 200: Profile },
      handle: async (ctx, { caller, body }) => ({
        status: 200,
        body: profile(await updateUser(ctx, caller.sub ?? "", body, { source: "profile" })),
      }),
    }),
    route({
      method: "GET",
      path: "/api/1/admin/users/{sub}/timezone_log",
      access: "admin",
      summary: "Every change of where a user is, the newest first",
      schemas: {
        params: WithSub,
        query: z.object({
          before: z.coerce.number().int().optional().meta({ description: "`next` of the page before" }),
          limit: z.coerce.number().int().min(1).max(100).default(50),
        }),
      },
      responses: {
        200: z.object({
          items: z.array(
            z.object({
              uid: z.string(),
              timezone: z.string().nullable(),
              source: z.string(),
              style: z.string().nullable(),
              guessed: z.boolean(),
              created_at: z.number(),
            }),
          ),
          next: z.number().nullable(),
        }),
      },
      handle: async (ctx, { params, query }) => ({ status: 200, body: await timezoneLog(ctx, params.sub, query) }),
    }),
    route({
      method: "GET",
      path: "/api/1/admin/user_notification_settings",
      access: "admin",
      summary: "When users want texts, and how they changed their minds",
      description: "The counts are those of now; the changes are those of finished days, by default the last 30.",
      schemas: { query: z.object({ from_date: z.iso.date().optional(), to_date: z.iso.date().optional() }) },
      responses: {
        200: z.object({
          counts: z.record(z.enum(PREFERENCES), z.int()),
          labels: z.array(z.string()),
          transitions: z.record(z.string(), z.array(z.int())),
        }),
      },
      async handle(ctx, { query }) {
        const yesterday = calendarOf(ctx).unixDate(ctx.clock.now()) - 1;
        const last = query.to_date === undefined ? undefined : parseIsoDate(query.to_date);
        const to = Math.min(last ?? yesterday, yesterday);
        const from = query.from_date === undefined ? to - SPAN + 1 : parseIsoDate(query.from_date);
        const range = { from: isoDate(Math.max(from, to - LONGEST_SPAN)), to: isoDate(to) };
        const [counts, history] = await Promise.all([preferenceCounts(ctx), preferenceHistory(ctx, range)]);
        return { status: 200, body: { counts, ...history } };
      },
    }),
  ];
}
