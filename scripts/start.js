// npm start: makes this clone ready, then runs everything in this process. Ctrl-C stops it cleanly.
import { build, setUp } from "./setup.js";
import { explain } from "./steps.js";

try {
  await setUp();
  await build();
} catch (error) {
  process.exit(explain(error));
}
process.argv.splice(2, 0, "up");
await import("../bin/carillon.js");
