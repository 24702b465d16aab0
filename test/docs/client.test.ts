import { expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import { openApiDocument } from "../../src/surfaces/http/index.ts";
import { expectNone, filesIn, read } from "../house/repository.ts";
import { blocks } from "./handbook.ts";

const { paths } = await openApiDocument(domains);
const shapes = Object.entries(paths).map(([path, operations]) => ({
  shape: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}/?$`),
  methods: Object.keys(operations),
}));
const exists = (method: string, path: string) =>
  shapes.some(({ shape, methods }) => shape.test(path) && methods.includes(method));

test("every call of the client in the examples is one of a route", () => {
  const calls = filesIn("docs/examples").flatMap((file) =>
    [...read(file).matchAll(/\.(get|post|put|patch|delete)\(\s*"(\/[^"]+)"/g)].map(([, method, path]) => ({
      file,
      method: method!,
      path: path!,
    })),
  );
  expect(calls.length).toBeGreaterThan(8);
  expectNone(
    "There are no such routes:",
    calls.flatMap(({ file, method, path }) =>
      path in paths && paths[path]![method] ? [] : [`${file}: ${method} ${path}`],
    ),
  );
});

test("every address that the handbook calls with curl is one of a route", () => {
  const calls = blocks("console").flatMap(({ page, text }) =>
    text
      .replaceAll(/\\\n\s*/g, " ")
      .split("\n")
      .filter((line) => line.startsWith("$ "))
      .flatMap((line) => {
        const posted = /\bpost (\/[^\s']+)/.exec(line)?.[1];
        const called = /\bcurl .*?https?:\/\/127\.0\.0\.1:8787(\/(?:api|l)\/[^\s'?"]+)/.exec(line)?.[1];
        const method = /-X ([A-Z]+)/.exec(line)?.[1]?.toLowerCase() ?? (/ -[dF] /.test(line) ? "post" : "get");
        if (posted) return [{ page, method: "post", path: `/api/1${posted}` }];
        return called && !called.includes("$") ? [{ page, method, path: called }] : [];
      }),
  );
  expect(calls.length).toBeGreaterThan(8);
  expectNone(
    "There are no such routes:",
    calls.flatMap(({ page, method, path }) => (exists(method, path) ? [] : [`${page}: ${method} ${path}`])),
  );
});
