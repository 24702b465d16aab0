// npm run bench -- <name>: measures Carillon beside its peers. Without a name it lists what there is.
import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { copyAssets, installPackages, setUp } from "./setup.js";
import { explain, root, run, StepFailed, say, step } from "./steps.js";

const bench = join(root, "bench");
const built = join(bench, ".build");

/** `queue.ts` or `queue/index.ts`; folders that start with a dot and packages are not benchmarks. */
function benchmarks() {
  return readdirSync(bench, { withFileTypes: true })
    .flatMap((entry) => {
      if (entry.isDirectory())
        return existsSync(join(bench, entry.name, "index.ts")) ? [[entry.name, `${entry.name}/index.js`]] : [];
      return entry.name.endsWith(".ts") ? [[entry.name.slice(0, -3), `${entry.name.slice(0, -3)}.js`]] : [];
    })
    .sort();
}

async function compileBenchmarks() {
  rmSync(built, { recursive: true, force: true });
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", join(bench, "tsconfig.json")], {
    failure: "The benchmarks do not compile: see above.",
  });
  copyAssets(join(root, "src"), join(built, "src"));
  // Carillon is measured with its own packages, although the peers' packages are nearer.
  symlinkSync(join(root, "node_modules"), join(built, "src/node_modules"));
}

const [name, ...rest] = process.argv.slice(2);
const known = new Map(benchmarks());
try {
  if (!name) {
    say(known.size === 0 ? "There are no benchmarks yet." : "npm run bench -- <name>, where the name is one of:");
    for (const each of known.keys()) say(`  ${each}`);
  } else {
    const file = known.get(name);
    if (!file)
      throw new StepFailed(`There is no benchmark ${name}. There are: ${[...known.keys()].join(", ") || "none"}`);
    await setUp({ redis: "always" });
    await installPackages(bench, "the peers to compare with");
    await step("Building the benchmarks", compileBenchmarks);
    const { run: measure } = await import(pathToFileURL(join(built, "bench", file)).href);
    await measure(rest);
  }
} catch (error) {
  process.exitCode = explain(error);
}
