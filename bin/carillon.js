#!/usr/bin/env node
import { existsSync } from "node:fs";

const entry = new URL("../dist/surfaces/cli/main.js", import.meta.url);
if (existsSync(entry)) {
  await import(entry.href);
} else {
  process.stderr.write(
    "Carillon is not built yet. Run `npm run build` in its folder, or `npm start` to do everything.\n",
  );
  process.exitCode = 1;
}
