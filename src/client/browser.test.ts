import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

test("the client compiles where there is a browser and no Node", async () => {
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"];
  const modules = ["--module", "esnext", "--moduleResolution", "bundler", "--allowImportingTsExtensions"];
  // No types but those of a browser: Buffer, process and their like are unknown.
  const platform = ["--lib", "es2022,dom,dom.iterable", "--types", ""];
  const compiler = path("../../node_modules/typescript/bin/tsc");
  const { stdout } = await run(process.execPath, [compiler, ...options, ...modules, ...platform, path("./index.ts")]);
  expect(stdout).toBe("");
});
