import fastify from "fastify";
import { serializerCompiler } from "fastify-type-provider-zod";
import type { Domain } from "../../domain.ts";
import { describeRoutes } from "./docs.ts";
import { describeRoute, routerPath } from "./mount.ts";
import { checkBySchema } from "./validation.ts";

/** As much of the OpenAPI description as whoever reads routes from it needs. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

/**
 * What a server with these rooms describes at `/api/1/openapi.json`, without Redis, SQL or a socket. Webhooks are left
 * out: only their providers call them.
 */
export async function openApiDocument(domains: readonly Domain[]): Promise<OpenApiDocument> {
  const app = fastify();
  app.setValidatorCompiler(checkBySchema);
  app.setSerializerCompiler(serializerCompiler);
  await describeRoutes(app, domains, "any");
  for (const { name, routes = [] } of domains)
    for (const route of routes)
      if (route.consumes !== "webhook")
        app.route({
          method: route.method,
          url: routerPath(route.path),
          schema: describeRoute(name, route),
          handler: () => undefined,
        });
  await app.ready();
  try {
    return app.swagger() as unknown as OpenApiDocument;
  } finally {
    await app.close();
  }
}
