import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { Catalogue, expires, family, integer, keysReference, list, string, text } from "../../kernel/keyspace/index.ts";
import { keysCommand } from "./keys.ts";

const keys = family("bells", {
  queue: list("bells:queue", integer, { doc: "bells to ring" }),
  token: string("bells:token:{token}", text, { doc: "who may ring", ttl: expires(60), secret: true }),
});
const catalogue = new Catalogue([{ name: "bells", keys: [keys] }]);

let ctx: TestContext;
let folder: string;
beforeAll(async () => {
  ctx = await openTestContext();
  folder = mkdtempSync(join(tmpdir(), "carillon-keys-"));
});
beforeEach(() => ctx.flush());
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await ctx.close();
});

async function run(...args: string[]) {
  const seen = { output: "", status: 0, closed: 0, server: false, progress: "" };
  const command = keysCommand(
    async ({ server }) => {
      seen.server = server;
      return { catalogue, ctx, invariants: [], close: async () => void seen.closed++ };
    },
    {
      print: (text) => {
        seen.output += `${text}\n`;
      },
      exit: (status) => {
        seen.status = status;
      },
      terminal: { isTTY: true, write: (text) => (seen.progress += text) },
    },
  );
  await command.parseAsync(args, { from: "user" });
  expect(seen.closed).toBe(1);
  return seen;
}

test("keys list prints every pattern, as a table or as JSON, without a server", async () => {
  const table = await run("list");
  expect(table.output).toMatch(/^bells:queue {2,}list {2,}never expires {2,}bells to ring$/m);
  expect(table.server).toBe(false);
  const parsed = JSON.parse((await run("list", "--json")).output);
  expect(parsed[0]).toEqual({
    pattern: "bells:queue",
    kind: "key",
    type: "list",
    family: "bells",
    domain: "bells",
    ttl: null,
    origin: "documented",
    doc: "bells to ring",
  });
});

test("keys explain shows meaning and value of a key, and helps with a mistyped one", async () => {
  await ctx.redis.commands.rpush("bells:queue", "1", "2");
  const known = await run("explain", "bells:queue");
  expect(known.output).toMatch(/^meaning {2,}bells to ring$/m);
  expect(known.output).toMatch(/^holds {2,}\[ 1, 2 \]$/m);
  expect(known.status).toBe(0);
  const mistyped = await run("explain", "bells:quoue");
  expect(mistyped.output).toMatch(/Near it are:\n {2}bells:queue/);
  expect(mistyped.status).toBe(1);
});

test("keys explain withholds what is secret", async () => {
  await ctx.redis.commands.set("bells:token:abc123", "hush", "EX", 60);
  const { output } = await run("explain", "bells:token:abc123");
  expect(output).toMatch(/withheld/);
  expect(output).not.toMatch(/hush|abc123/);
});

test("keys audit ends with status 0 in order and with 1 on findings, and shows its progress", async () => {
  await ctx.redis.commands.rpush("bells:queue", "1");
  const fine = await run("audit");
  expect(fine).toMatchObject({ status: 0, server: true });
  expect(fine.output).toMatch(/Everything is as declared/);
  expect(fine.progress).toMatch(/100 % {2}1 of 1/);
  await ctx.redis.commands.set("bells:token:abc123", "hush");
  await ctx.redis.commands.set("stranger", "x");
  const faulty = await run("audit");
  expect(faulty.status).toBe(1);
  expect(faulty.output).toMatch(/missing_ttl bells:token:\{token\}: 1/);
  expect(faulty.output).toMatch(/stranger: a string/);
  expect(faulty.output).not.toMatch(/abc123/);
  expect(JSON.parse((await run("audit", "--json", "--deep")).output)).toMatchObject({
    ok: false,
    found: 2,
    deep: true,
  });
});

test("keys docs writes the reference, and its check notices a stale one", async () => {
  const file = join(folder, "docs", "keys.md");
  expect(await run("docs", "--check", "--file", file)).toMatchObject({ status: 1 });
  expect(await run("docs", "--file", file)).toMatchObject({ status: 0, server: false });
  expect(readFileSync(file, "utf8")).toBe(keysReference(catalogue));
  expect(await run("docs", "--check", "--file", file)).toMatchObject({ status: 0 });
  writeFileSync(file, "stale");
  const stale = await run("docs", "--check", "--file", file);
  expect(stale.output).toMatch(/carillon keys docs/);
  expect(stale.status).toBe(1);
});

test("the help of each keys command teaches with examples", () => {
  const command = keysCommand(() => Promise.reject(new Error("not needed")), { print: () => {} });
  expect(command.commands.map((each) => each.name())).toEqual(["list", "explain", "audit", "docs"]);
  for (const each of command.commands) {
    let help = "";
    each.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toMatch(/Examples:\n {2}carillon keys /);
  }
});
