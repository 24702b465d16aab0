import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { ROLES } from "../../people/users/service.ts";
import { errors } from "./errors.ts";
import { CONTACT_UID, removeContactMethods, switchNotifications } from "./notifications.ts";
import { searchPeople } from "./people-search.ts";

const OfPerson = z.object({
  sub: z.string().regex(/^[A-Za-z0-9._|@+-]{1,128}$/, "is not a sub"),
  uid: z.string().regex(CONTACT_UID, "is not the uid of a contact method"),
});

/** How administrators find people, and act on their behalf. */
export const personRoutes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/admin/people",
    access: "admin",
    summary: "Find people by name, email address, phone number or sub, the newest first",
    schemas: {
      query: z.object({
        search: z
          .string()
          .max(254)
          .regex(/^[^\p{Cc}]*$/u, "must be text without control characters")
          .optional()
          .meta({ description: "A part of a name, address or number, or the beginning of a sub" }),
        before: z.uuid().optional().meta({ description: "`next` of the page before" }),
        limit: z.coerce.number().int().min(1).max(100).default(25),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            sub: z.string(),
            uuid: z.uuid(),
            role: z.enum(ROLES),
            timezone: z.string().nullable(),
            given_name: z.string().nullable(),
            family_name: z.string().nullable(),
            created_at: z.number(),
            emails: z.array(z.string()),
            phones: z.array(z.string()),
            push_tokens: z.int(),
          }),
        ),
        next: z.uuid().nullable(),
      }),
    },
    handle: async (ctx, { query }) => ({
      status: 200,
      headers: { "cache-control": "no-store" },
      body: await searchPeople(ctx, query),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/users/{sub}/contact_methods/{uid}/notifications",
    access: "admin",
    summary: "Switch notifications to a contact method on or off, on its owner's behalf",
    schemas: { params: OfPerson, body: z.strictObject({ enabled: z.boolean() }) },
    async handle(ctx, { params: { sub: userSub, uid }, body: { enabled } }) {
      const found = await switchNotifications(ctx, [{ userSub, uid, enabled }], "admin");
      if (found.size === 0) throw errors.contact_method_not_found();
      return { status: 204 };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/users/{sub}/contact_methods/{uid}",
    access: "admin",
    summary: "Remove a contact method, on its owner's behalf",
    schemas: { params: OfPerson },
    async handle(ctx, { params: { sub: userSub, uid } }) {
      const gone = await removeContactMethods(ctx, [{ userSub, uid }], "admin");
      if (gone.size === 0) throw errors.contact_method_not_found();
      return { status: 204 };
    },
  }),
];
