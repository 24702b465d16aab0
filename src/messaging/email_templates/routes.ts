import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route, RouteReply } from "../../kernel/route.ts";
import { errors } from "./errors.ts";
import {
  describeTemplate,
  listTemplates,
  type Preview,
  previewOfExample,
  previewTemplate,
  readyBrand,
} from "./service.ts";

const params = z.object({ slug: z.string().max(64) });
const As = z.enum(["json", "html", "text"]).default("json");
const BODY_LIMIT = 262_144;
/** What goes into an address: longer ones are refused on the way. */
const LONGEST_IN_ADDRESS = 12_000;

const GivenParameters = z
  .string()
  .max(LONGEST_IN_ADDRESS)
  .transform((text, refinement): Record<string, unknown> => {
    try {
      return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
    } catch {
      refinement.addIssue("is not a JSON object");
      return z.NEVER;
    }
  });

const Description = z.object({
  slug: z.string(),
  title: z.string(),
  doc: z.string(),
  list: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()).describe("JSON Schema"),
  secret: z.array(z.string()),
  examples: z.array(z.unknown()),
  subject: z.string().describe("of the first example"),
  lifetime: z.number().nullable().describe("seconds; of the first example"),
  attachments: z.array(z.string()),
});

const Previewed = z.object({
  subject: z.string(),
  html: z.string(),
  text: z.string(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })),
  bytes: z.number(),
  warnings: z.array(z.string()),
});

export const routes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/emails/assets/{name}",
    access: "public",
    summary: "A picture that mails show",
    description: "Named by its contents, so it may be kept for ever.",
    schemas: { params: z.object({ name: z.string().regex(/^[0-9a-f]{16}\.(png|jpg|gif)$/) }) },
    async handle(ctx, { params: { name } }) {
      const { logo } = await readyBrand(ctx);
      if (logo?.picture.name !== name) throw errors.picture_not_found();
      return {
        status: 200,
        headers: {
          "content-type": logo.picture.contentType,
          "cache-control": "public, max-age=31536000, immutable",
          "cross-origin-resource-policy": "cross-origin",
        },
        body: logo.picture.bytes,
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/email/templates",
    access: "admin",
    summary: "Every email template, with the schema of its parameters and examples",
    responses: { 200: z.object({ templates: z.array(Description) }) },
    handle: () => ({ status: 200, body: { templates: listTemplates() } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/email/templates/{slug}",
    access: "admin",
    summary: "One email template",
    schemas: { params },
    responses: { 200: Description },
    handle: (_ctx, request) => ({ status: 200, body: describeTemplate(request.params.slug) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/email/templates/{slug}/preview",
    access: "admin",
    summary: "A template as it would be sent, with the parameters of an example or with these",
    description: "With `as=html` it can be framed by pages of this server; it runs no scripts there.",
    schemas: {
      params,
      query: z.object({
        example: z.coerce.number().int().min(0).default(0),
        parameters: GivenParameters.optional().meta({ description: "A JSON object, in place of those of the example" }),
        as: As,
      }),
    },
    responses: { 200: Previewed },
    handle: async (ctx, { params: { slug }, query: { example, parameters, as } }) =>
      shown(
        parameters === undefined
          ? await previewOfExample(ctx, slug, example)
          : await previewTemplate(ctx, slug, { parameters }),
        as,
      ),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/email/templates/{slug}/preview",
    access: "admin",
    summary: "A template with these parameters as it would be sent",
    description: "Nothing is sent or kept. `as=html` and `as=text` answer with one part alone.",
    schemas: {
      params,
      query: z.object({ as: As }),
      body: z.strictObject({
        template_parameters: z.record(z.string(), z.unknown()),
        subject: z.string().min(1).max(250).optional(),
      }),
    },
    responses: { 200: Previewed },
    bodyLimit: BODY_LIMIT,
    handle: async (ctx, { params: { slug }, query, body }) =>
      shown(
        await previewTemplate(ctx, slug, { parameters: body.template_parameters, subject: body.subject }),
        query.as,
      ),
  }),
];

/** A mail is a stranger's page: it may show pictures and colours, and do nothing. */
const PREVIEW_POLICY =
  "sandbox; default-src 'none'; img-src https: data:; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

function shown(preview: Preview, as: z.output<typeof As>): RouteReply {
  if (as === "json") return { status: 200, body: preview };
  if (as === "text")
    return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: preview.text };
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": PREVIEW_POLICY,
    "x-frame-options": "SAMEORIGIN",
  };
  return { status: 200, headers, body: preview.html };
}
