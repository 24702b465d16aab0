import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { errors as userErrors } from "../../people/users/service.ts";
import { createAdminToken, listAdminTokens, listAudit, mintAccessToken, revokeAdminToken } from "./service.ts";
import { sessionRoutes } from "./session-routes.ts";

const AdminToken = z.object({
  uid: z.string(),
  label: z.string(),
  created_at: z.number(),
  last_used_at: z.number().nullable().meta({ description: "Exact to a minute" }),
  revoked_at: z.number().nullable(),
});

const Limit = z.coerce.number().int().min(1).max(200).default(50);

export const routes: readonly Route<Context>[] = [
  ...sessionRoutes,
  route({
    method: "POST",
    path: "/api/1/admin/tokens",
    access: "admin",
    summary: "Create an admin token",
    description: "The answer is the only place where the token ever appears.",
    schemas: { body: z.strictObject({ label: z.string().trim().min(1).max(100) }) },
    responses: { 201: AdminToken.extend({ token: z.string() }) },
    handle: async (ctx, { body }) => ({ status: 201, body: await createAdminToken(ctx, body) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/tokens",
    access: "admin",
    summary: "List admin tokens, the newest first",
    schemas: { query: z.object({ before: z.string().optional(), limit: Limit }) },
    responses: { 200: z.object({ items: z.array(AdminToken), next: z.string().nullable() }) },
    handle: async (ctx, { query }) => {
      const { tokens, next } = await listAdminTokens(ctx, query);
      return { status: 200, body: { items: tokens, next: next ?? null } };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/tokens/{uid}",
    access: "admin",
    summary: "Revoke an admin token",
    description: "It stops working at once on the server that answers, and within ten seconds on all others.",
    schemas: { params: z.object({ uid: z.string().max(64) }) },
    handle: async (ctx, { params }) => {
      await revokeAdminToken(ctx, params.uid);
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/users/{sub}/access_token",
    access: "admin",
    summary: "Mint an access token for a user",
    schemas: {
      params: z.object({ sub: z.string().max(128) }),
      body: z
        .strictObject({
          expires_in: z.number().int().min(60).max(86_400).default(3_600).meta({ description: "Seconds" }),
        })
        .prefault({}),
    },
    responses: {
      201: z.object({ access_token: z.string(), token_type: z.literal("Bearer"), expires_at: z.number() }),
    },
    handle: async (ctx, { params, body }) => {
      const minted = await mintAccessToken(ctx, params.sub, body.expires_in);
      if (!minted) throw userErrors.user_not_found();
      return {
        status: 201,
        body: { access_token: minted.token, token_type: "Bearer", expires_at: minted.expiresAt },
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/audit_log",
    access: "admin",
    summary: "Read what administrators changed, the newest first",
    schemas: {
      query: z.object({
        before: z.coerce.number().int().min(1).optional(),
        limit: Limit,
        admin: z.string().max(128).optional(),
        action: z.string().max(256).optional(),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            id: z.number(),
            admin: z.string(),
            action: z.string(),
            target: z.string(),
            detail: z.record(z.string(), z.unknown()),
            created_at: z.number(),
          }),
        ),
        next: z.number().nullable(),
      }),
    },
    handle: async (ctx, { query }) => {
      const { entries, next } = await listAudit(ctx, query);
      return { status: 200, body: { items: entries, next: next ?? null } };
    },
  }),
];
