import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadConfig, readDotenv, type Setting, settings } from "./config.ts";

const port = settings.integer("http.port", { default: 8787, min: 1, max: 65_535, doc: "where the server listens" });
const heavy = settings.integer("job.heavyConcurrency", { default: 1, doc: "costly jobs at once" });
const secret = settings.text("root.secret", { default: "", secret: true, doc: "the root of all keys" });
const demo = settings.flag("demo", { default: true, doc: "a demo" });
const level = settings.oneOf("log.level", ["debug", "info"], { default: "info", doc: "how much is logged" });
const categories = settings.listOf("job.categories", z.coerce.number(), {
  default: [2, 1],
  doc: "accepted categories",
});
const instances = settings.json("expected.instances", z.record(z.string(), z.number()), {
  default: {},
  doc: "instances",
});
const all = [port, heavy, secret, demo, level, categories, instances] as unknown as readonly Setting<unknown>[];
const load = (environment: Record<string, string>, dotenv = {}) => loadConfig(all, { environment, dotenv });

test("the name of a setting gives the name of its variable", () => {
  expect(heavy.env).toBe("CARILLON_JOB_HEAVY_CONCURRENCY");
  expect(port.env).toBe("CARILLON_HTTP_PORT");
});

test("values come from the environment, then from .env, then from the declaration", () => {
  const config = load({ CARILLON_HTTP_PORT: "9000" }, { CARILLON_HTTP_PORT: "9001", CARILLON_LOG_LEVEL: "debug" });
  expect(config.get(port)).toBe(9000);
  expect(config.get(level)).toBe("debug");
  expect(config.get(demo)).toBe(true);
  expect(config.effective.map(({ source }) => source)).toContain(".env");
});

test("flags, lists and JSON are read from text", () => {
  const config = load({
    CARILLON_DEMO: "off",
    CARILLON_JOB_CATEGORIES: "1, 2",
    CARILLON_EXPECTED_INSTANCES: '{"backend":3}',
  });
  expect(config.get(demo)).toBe(false);
  expect(config.get(categories)).toEqual([1, 2]);
  expect(config.get(instances)).toEqual({ backend: 3 });
});

test("all bad values are reported together, by variable, with their meaning, and secrets stay hidden", () => {
  const bad = () =>
    load({
      CARILLON_HTTP_PORT: "http",
      CARILLON_LOG_LEVEL: "loud",
      CARILLON_EXPECTED_INSTANCES: "{",
      CARILLON_DEMO: "maybe",
    });
  expect(bad).toThrow(/CARILLON_HTTP_PORT="http".*where the server listens/s);
  expect(bad).toThrow(/CARILLON_LOG_LEVEL="loud"/);
  expect(bad).toThrow(/CARILLON_EXPECTED_INSTANCES.*is not valid JSON/);
  const long = { ...secret, schema: z.string().min(32) } as unknown as Setting<unknown>;
  expect(() => loadConfig([long], { environment: { CARILLON_ROOT_SECRET: "hunter2" } })).toThrow(/\(hidden\)/);
  expect(() => loadConfig([long], { environment: { CARILLON_ROOT_SECRET: "hunter2" } })).not.toThrow(/hunter2/);
});

test("an empty variable is the same as none", () => {
  expect(load({ CARILLON_HTTP_PORT: "" }).get(port)).toBe(8787);
});

test("one variable for two settings stops the start", () => {
  expect(() => loadConfig([...all, all[0]!], { environment: {} })).toThrow("declared twice");
});

test("a .env file may have comments, quotes and exports, or be missing", () => {
  const file = join(mkdtempSync(join(tmpdir(), "carillon-dotenv-")), ".env");
  writeFileSync(file, "# comment\nexport A=1\nB = 'two words' \nC=\"x#y\"\nD=plain # note\n\nnot a line\n");
  expect(readDotenv(file)).toEqual({ A: "1", B: "two words", C: "x#y", D: "plain" });
  expect(readDotenv(`${file}.missing`)).toEqual({});
});
