// npm run build: compiles src into dist, if anything changed.
import { build, buildIsCurrent, checkNode, installPackages } from "./setup.js";
import { explain, say } from "./steps.js";

try {
  checkNode();
  await installPackages();
  if (buildIsCurrent()) say("✓ dist is up to date");
  else await build();
} catch (error) {
  process.exit(explain(error));
}
