import { expect, test } from "vitest";
import { schemaText } from "./reference-client.ts";

const json = (schema: object) => ({ content: { "application/json": { schema } } });

test("the types of a route say what it takes and what it answers, with its documentation", () => {
  const text = schemaText({
    paths: {
      "/notes/{uid}": {
        post: {
          summary: "Keep a note",
          description: "For another day.",
          parameters: [
            { in: "path", name: "uid", required: true, schema: { type: "string" }, description: "Of the note" },
            { in: "query", name: "limit", schema: { type: "integer" } },
          ],
          requestBody: {
            required: true,
            ...json({
              type: "object",
              required: ["kind", "tags"],
              properties: {
                kind: { anyOf: [{ type: "string", enum: ["long", "short"] }, { type: "null" }] },
                tags: { type: "array", items: { type: "string" } },
                "not-a-name": { type: ["number", "null"] },
                extra: { type: "object", additionalProperties: {} },
              },
              additionalProperties: false,
            }),
          },
          responses: {
            200: json({ type: "array", items: { type: ["string", "null"] } }),
            201: json({
              type: "object",
              required: ["next"],
              properties: { next: { $ref: "#/components/schemas/Page" } },
            }),
            "4XX": json({ $ref: "#/components/schemas/Failure" }),
          },
        },
        delete: { summary: "Forget a note", responses: {} },
      },
      "/files": { put: { requestBody: { content: { "multipart/form-data": {} } }, responses: { 204: {} } } },
    },
    components: {
      schemas: {
        Page: { prefixItems: [{ type: "integer" }, { const: "end" }], type: "array" },
        Failure: { type: "object", propertyNames: { enum: ["a", "b"] }, additionalProperties: { type: "boolean" } },
        Unused: { type: "string" },
      },
    },
  });
  expect(text.slice(text.indexOf("export interface"))).toBe(`export interface Routes {
  get: {
  };
  post: {
    /** Keep a note. For another day. */
    "/notes/{uid}": {
      path: {
        /** Of the note */
        uid: string;
      };
      query?: {
        limit?: number | undefined;
      };
      body: {
        kind: "long" | "short" | null;
        tags: readonly string[];
        "not-a-name"?: number | null | undefined;
        extra?: Record<string, unknown> | undefined;
      };
      answer: (string | null)[] | {
        next: Page;
      };
    };
  };
  put: {
    "/files": {
      body: FormData;
      answer: unknown;
    };
  };
  patch: {
  };
  delete: {
    /** Forget a note. */
    "/notes/{uid}": {
      answer: unknown;
    };
  };
}

export type Page = [number, "end"];

export type Failure = Partial<Record<"a" | "b", boolean>>;
`);
});
