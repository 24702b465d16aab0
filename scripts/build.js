// npm run build: compiles src into dist and builds the dashboard beside it, if anything changed.
import { pagesAreCurrent } from "./pages.js";
import { build, buildIsCurrent, checkNode, installPackages } from "./setup.js";
import { explain, say } from "./steps.js";

try {
  checkNode();
  await installPackages();
  if (buildIsCurrent() && pagesAreCurrent()) say("✓ dist is up to date");
  else await build();
} catch (error) {
  process.exit(explain(error));
}
