import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { domain, route } from "../../domain.ts";
import { httpSettings, type Readiness } from "./index.ts";

const catalogue = domain({
  name: "catalogue",
  routes: [
    route({
      method: "POST",
      path: "/api/1/things/{uid}",
      access: "user",
      summary: "Change a thing",
      description: "Says more.",
      schemas: {
        params: z.object({ uid: z.string() }),
        query: z.object({ dry: z.coerce.boolean().optional() }),
        body: z.object({ size: z.number().min(1) }),
      },
      responses: { 202: z.object({ size: z.number() }) },
      handle: (_ctx, { body }) => ({ status: 202, body }),
    }),
    route({
      method: "POST",
      path: "/api/1/things/{uid}/picture",
      access: "token",
      summary: "Upload a picture",
      consumes: "multipart",
      handle: () => ({ status: 202 }),
    }),
  ],
});

const WELL: Readiness = { redis: true, sql: true, scripts: true, subscriber: true };
let server: TestServer;
let readiness: Readiness = WELL;
beforeAll(async () => {
  server = await openTestServer({
    domains: [catalogue],
    server: { version: "1.2.3", readiness: async () => readiness },
  });
  server.ctx.metrics.counter("carillon_test_total", "A test counter.").inc(3);
});
afterAll(() => server.close());

interface Operation {
  readonly summary: string;
  readonly operationId: string;
  readonly security: readonly Record<string, unknown>[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: object }> }>;
}

async function operations(): Promise<Record<string, Record<string, Operation>>> {
  return (await server.call("GET", "/api/1/openapi.json")).json().paths;
}

test("the interface description lists every route with its schemas and who may call it", async () => {
  const described = await operations();
  const ids = new Set<string>();
  for (const { routes = [] } of server.domains)
    for (const { method, path, summary, access, schemas = {}, responses = {}, consumes } of routes) {
      const operation = described[path]?.[method.toLowerCase()];
      expect([path, operation?.summary]).toEqual([path, summary]);
      expect([path, operation!.security.length > 0]).toEqual([path, access !== "public"]);
      const places = new Set((operation!.parameters ?? []).map((parameter) => parameter.in));
      expect([path, places.has("path")]).toEqual([path, path.includes("{")]);
      expect([path, places.has("query")]).toEqual([path, Boolean(schemas.query)]);
      expect([path, Boolean(operation!.requestBody)]).toEqual([
        path,
        Boolean(schemas.body) || consumes === "multipart",
      ]);
      for (const status of Object.keys(responses))
        expect(operation!.responses[status]?.content?.["application/json"]?.schema).toBeDefined();
      expect(operation!.responses["4XX"]).toBeDefined();
      ids.add(operation!.operationId);
    }
  expect(ids.size).toBe(server.domains.flatMap(({ routes = [] }) => routes).length);
});

test("the interface description is OpenAPI 3.1 and shows constraints as the routes check them", async () => {
  const document = (await server.call("GET", "/api/1/openapi.json")).json();
  expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Carillon", version: "1.2.3" } });
  const operation = document.paths["/api/1/things/{uid}"].post as Operation;
  expect(operation.requestBody?.content["application/json"]?.schema).toMatchObject({
    type: "object",
    properties: { size: { type: "number", minimum: 1 } },
    required: ["size"],
  });
  const upload = document.paths["/api/1/things/{uid}/picture"].post as Operation;
  expect(Object.keys(upload.requestBody!.content)).toEqual(["multipart/form-data"]);
  expect(JSON.stringify(operation.responses["4XX"])).toContain("#/components/schemas/Failure");
  expect(Object.keys(document.components.schemas.Failure.properties)).toContain("request_id");
  for (const path of ["/healthz", "/readyz", "/metrics"]) expect(document.paths).toHaveProperty([path, "get"]);
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path as object)) as Operation[])
    for (const name of operation.security.flatMap((choice) => Object.keys(choice)))
      expect(document.components.securitySchemes).toHaveProperty(name);
});

test("the reference page loads everything from this server and is not allowed to ask anyone else", async () => {
  const redirect = await server.call("GET", "/docs");
  expect([redirect.statusCode, redirect.headers.location]).toEqual([301, "/docs/"]);
  const page = await server.call("GET", "/docs/");
  expect(page.statusCode).toBe(200);
  expect(page.body).not.toMatch(/(https?:)?\/\/[a-z0-9-]+\./i);
  expect(page.body).toContain("/api/1/openapi.json");
  const sources = [...page.body.matchAll(/<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"/g)].map(
    ([, source]) => source!,
  );
  expect(sources.length).toBeGreaterThan(0);
  for (const source of sources) {
    const asset = await server.call("GET", new URL(source, "http://here/docs/").pathname);
    expect([source, asset.statusCode]).toEqual([source, 200]);
  }
  const policy = String(page.headers["content-security-policy"]);
  expect(policy).toMatch(/default-src 'none'.*connect-src 'self'/);
  expect(policy).not.toMatch(/https?:|\*|script-src[^;]*'unsafe-inline'/);
});

test("the program of the reference page is compressed for those who can unpack it", async () => {
  const plain = await server.call("GET", "/docs/js/scalar.js");
  const packed = await server.call("GET", "/docs/js/scalar.js", { headers: { "accept-encoding": "gzip, br" } });
  expect(packed.headers["content-encoding"]).toBe("gzip");
  expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 2);
});

test("the first page says what runs here, leads on, and needs nothing from elsewhere", async () => {
  const page = await server.call("GET", "/");
  expect(page.headers["content-type"]).toMatch(/^text\/html/);
  for (const part of ["Carillon", "1.2.3", "Catalogue", "2 routes", "Everything works"])
    expect(page.body).toContain(part);
  for (const path of ["/docs/", "/api/1/openapi.json", "/healthz", "/readyz"]) {
    expect(page.body).toContain(`href="${path}"`);
    expect((await server.call("GET", path)).statusCode).toBe(200);
  }
  expect(page.body.replaceAll("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:\/\//);
  const icon = await server.call("GET", "/favicon.ico");
  expect([icon.statusCode, icon.headers["content-type"]]).toEqual([200, "image/x-icon"]);
  expect(icon.rawPayload.subarray(0, 4)).toEqual(Buffer.from([0, 0, 1, 0]));
  expect(icon.rawPayload.readUInt32LE(14)).toBe(icon.rawPayload.length - 22);
});

test("a part that is away makes the server alive but not ready, and the first page says which", async () => {
  readiness = { ...WELL, sql: false };
  try {
    const ready = await server.call("GET", "/readyz");
    expect(ready.statusCode).toBe(503);
    expect(ready.json()).toMatchObject({
      type: "not_ready",
      detail: { redis: true, sql: false, scripts: true, subscriber: true },
    });
    expect((await server.call("GET", "/healthz")).json()).toEqual({ status: "ok" });
    expect((await server.call("GET", "/")).body).toContain("Not everything works");
  } finally {
    readiness = WELL;
  }
  expect((await server.call("GET", "/readyz")).json()).toEqual({ status: "ready" });
});

test("without a metrics token only this machine may read metrics", async () => {
  const here = await server.call("GET", "/metrics");
  expect(here.headers["content-type"]).toMatch(/^text\/plain/);
  expect(here.body).toContain("carillon_test_total 3");
  expect(here.body).toContain('carillon_http_request_seconds_count{method="GET",route="/healthz",status="200"}');
  const elsewhere = await server.call("GET", "/metrics", { from: "192.0.2.7" });
  expect([elsewhere.statusCode, elsewhere.json().type]).toEqual([403, "metrics_forbidden"]);
  const proxied = await server.call("GET", "/metrics", { headers: { "x-forwarded-for": "203.0.113.9" } });
  expect(proxied.statusCode).toBe(403);
});

test("with a metrics token everybody needs it", async () => {
  const guarded = await server.another({ settings: [[httpSettings.metricsToken, "metrics-token-of-tests"]] });
  const ask = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization };
    return (await guarded.inject({ url: "/metrics", headers, remoteAddress: "192.0.2.7" })).statusCode;
  };
  expect(await ask("Bearer metrics-token-of-tests")).toBe(200);
  expect(await ask("Bearer metrics-token-of-test")).toBe(401);
  expect(await ask()).toBe(401);
});
