// npm run bench -- <name>: measures Carillon beside its peers. Without a name it lists what there is.
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { copyAssets, installPackages, setUp } from "./setup.js";
import { explain, root, run, StepFailed, say, step } from "./steps.js";

const bench = join(root, "bench");
const built = join(bench, ".build");

/** `queue.ts` or `queue/index.ts`, if it exports `run`; what else lies there is shared between them. */
function benchmarks() {
  return readdirSync(bench, { withFileTypes: true })
    .map((entry) => (entry.isDirectory() ? [entry.name, `${entry.name}/index`] : [basename(entry.name, ".ts")]))
    .map(([name, file = name]) => ({
      name,
      source: join(bench, `${file}.ts`),
      compiled: join(built, "bench", `${file}.js`),
    }))
    .filter(
      ({ source }) =>
        existsSync(source) && /^export (async )?(function|const) run\b/m.test(readFileSync(source, "utf8")),
    )
    .sort((one, other) => (one.name < other.name ? -1 : 1));
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
const known = benchmarks();
try {
  if (!name) {
    say(known.length === 0 ? "There are no benchmarks yet." : "npm run bench -- <name>, where the name is one of:");
    for (const each of known) say(`  ${each.name}`);
  } else {
    const wanted = known.find((each) => each.name === name);
    const names = known.map((each) => each.name).join(", ");
    if (!wanted) throw new StepFailed(`There is no benchmark ${name}. There are: ${names || "none"}`);
    await setUp({ redis: "always" });
    await installPackages(bench, "the peers to compare with");
    await step("Building the benchmarks", compileBenchmarks);
    const { run: measure } = await import(pathToFileURL(wanted.compiled).href);
    await measure(rest);
    // Peers keep timers and connections open that they give no handle to.
    process.exit(0);
  }
} catch (error) {
  process.exitCode = explain(error);
}
