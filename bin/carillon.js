#!/usr/bin/env -S node --max-semi-space-size=64
// More room for young objects: a busy worker spends a fifth less of the processor, and a process that is not busy takes none of it.
import { existsSync } from "node:fs";

// The mail client is pinned to a version that knows this Node; its advice for later versions is not for whoever runs Carillon.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

const entry = new URL("../dist/surfaces/cli/main.js", import.meta.url);
if (existsSync(entry)) {
  await import(entry.href);
} else {
  process.stderr.write(
    "Carillon is not built yet. Run `npm run build` in its folder, or `npm start` to do everything.\n",
  );
  process.exitCode = 1;
}
