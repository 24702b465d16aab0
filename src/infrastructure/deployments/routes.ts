import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { REPO, SHA } from "./keys.ts";
import { authorizeDeployment, deploymentOverview, requestUpdate, unlockUnit } from "./service.ts";

const Repo = z.string().regex(new RegExp(`^${REPO.source}$`));

const Overview = z.object({
  units: z.array(
    z.object({
      repo: z.string(),
      kind: z.enum(["plain", "build"]),
      lock: z.object({ expires_in: z.number() }).nullable(),
      build_hash: z.string().nullable(),
      subscribers: z.number(),
    }),
  ),
  builds: z.array(
    z.object({
      repo: z.string(),
      sha: z.string(),
      state: z.enum(["requested", "building", "ready", "failed"]),
      committed_at: z.number(),
      finished_at: z.number().nullable(),
      error: z.string().nullable(),
      size: z.number().nullable(),
    }),
  ),
  events: z.array(
    z.object({
      repo: z.string(),
      instance: z.string(),
      event: z.string(),
      sha: z.string().nullable(),
      created_at: z.number(),
    }),
  ),
});

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/continuous_deployment/update",
    access: "token",
    summary: "Ask every instance of a unit to update, one after the other",
    description: "Takes the deployment secret as a bearer token; at most 10 requests a minute and address.",
    schemas: { body: z.object({ repo: z.string().max(100), sha: z.string().regex(SHA).optional() }) },
    responses: { 202: z.object({ subscribers: z.number(), expected: z.number().optional() }) },
    async handle(ctx, { body, headers, caller }) {
      await authorizeDeployment(ctx, bearer(headers.authorization), caller.address);
      return { status: 202, body: await requestUpdate(ctx, body) };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/deployments",
    access: "admin",
    summary: "Units, whose turn it is, builds, and what happened lately",
    responses: { 200: Overview },
    handle: async (ctx) => ({ status: 200, body: await deploymentOverview(ctx) }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/deployments/{repo}/unlock",
    access: "admin",
    summary: "End the present turn of a unit, so that the next instance may update",
    schemas: { params: z.object({ repo: Repo }) },
    async handle(ctx, { params }) {
      await unlockUnit(ctx, params.repo);
      return { status: 204 };
    },
  }),
];

function bearer(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" ? /^bearer +(\S+) *$/i.exec(header)?.[1] : undefined;
}
