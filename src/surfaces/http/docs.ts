import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import swagger from "@fastify/swagger";
import scalar from "@scalar/fastify-api-reference";
import type { FastifyInstance } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { Domain } from "../../domain.ts";
import { ICON_PATH } from "./icon.ts";

export const OPENAPI_PATH = "/api/1/openapi.json";
export const DOCS_PATH = "/docs";

const INTRODUCTION = `Every refusal has the shape \`{type, message, hint?, detail?, request_id}\`: decide on \`type\`, show \`message\`, and quote \`request_id\`, which is also in the \`X-Request-Id\` header.

Send an access token or an admin token as \`Authorization: Bearer …\`. 401 means that the credential is missing or no longer works, 403 that it works but not here, 422 that a value does not fit its schema, 429 and 503 that it is worth trying again after \`Retry-After\` seconds. Times are unix seconds.`;

/** `file_uploads` as people read it: `File uploads`. */
export function displayName(room: string): string {
  const words = room.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Must run before routes are added: the description is gathered as they arrive. */
export async function describeRoutes(app: FastifyInstance, domains: readonly Domain[], version: string): Promise<void> {
  const withRoutes = domains.filter((domain) => (domain.routes ?? []).length > 0);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Carillon", version, description: INTRODUCTION },
      tags: [...withRoutes.map(({ name }) => name), "server"].map((name) => ({
        name,
        "x-displayName": displayName(name),
      })),
      components: {
        securitySchemes: {
          admin_token: { type: "http", scheme: "bearer", description: "An admin token, `crl_admin_…`." },
          access_token: {
            type: "http",
            scheme: "bearer",
            bearerFormat: "JWT",
            description: "A user's access token. On admin routes its user must have the role admin.",
          },
          session_cookie: {
            type: "apiKey",
            in: "cookie",
            name: "carillon_session",
            description: "A browser that is signed in to the dashboard. Changes need `X-CSRF-Token` too.",
          },
          metrics_token: { type: "http", scheme: "bearer", description: "The setting `metrics.token`." },
          resource_token: {
            type: "http",
            scheme: "bearer",
            bearerFormat: "JWT",
            description: "A token for one thing, such as one upload or the progress of one job.",
          },
        },
      },
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
}

/** The description as JSON, and the page that shows it. Everything the page needs is served from here. */
export async function serveDocs(app: FastifyInstance): Promise<void> {
  let description: string | undefined;
  app.get(OPENAPI_PATH, { schema: { hide: true } }, async (_request, reply) => {
    description ??= JSON.stringify(app.swagger());
    return reply.type("application/json; charset=utf-8").send(description);
  });
  await app.register(async (page) => {
    let compressed: Buffer | undefined;
    page.addHook("onSend", async (request, reply, payload) => {
      if (typeof payload !== "string") return payload;
      const type = String(reply.getHeader("content-type"));
      if (type.startsWith("text/html")) {
        reply.header("content-security-policy", pagePolicy(payload));
        return payload;
      }
      if (!type.startsWith("application/javascript")) return payload;
      reply.header("cache-control", "public, max-age=3600").header("vary", "Accept-Encoding");
      if (!/\bgzip\b/.test(String(request.headers["accept-encoding"]))) return payload;
      compressed ??= gzipSync(payload);
      reply.header("content-encoding", "gzip").header("content-length", compressed.length);
      return compressed;
    });
    await page.register(scalar, {
      routePrefix: DOCS_PATH,
      configuration: {
        url: OPENAPI_PATH,
        pageTitle: "Carillon interface",
        favicon: ICON_PATH,
        theme: "default",
        withDefaultFonts: false,
        hideClientButton: true,
        telemetry: false,
        authentication: { preferredSecurityScheme: "admin_token" },
        showDeveloperTools: "never",
        agent: { disabled: true },
        mcp: { disabled: true },
        defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
        customCss: PAGE_STYLE,
      },
    });
  });
}

const PAGE_STYLE = `:root { --scalar-font: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; --scalar-font-code: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }`;

/** Only scripts from here and those written into the page by us run, and the page talks to nobody else. */
function pagePolicy(html: string): string {
  const inline = [...html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, script]) => `'sha256-${createHash("sha256").update(script!).digest("base64")}'`,
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(" ")}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}
