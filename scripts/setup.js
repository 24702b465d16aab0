// Makes a fresh clone ready: Node's version, packages, Redis, the build. Does only what is missing.
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { buildPages } from "./pages.js";
import { bringsOwnRedis, prepareRedis } from "./redis.js";
import { root, run, StepFailed, step } from "./steps.js";

const LEAST_NODE = [20, 19];

export function nodeIsRecent(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
}

export function checkNode(version = process.versions.node) {
  if (!nodeIsRecent(version))
    throw new StepFailed(
      `This is Node ${version}; Carillon needs ${LEAST_NODE.join(".")} or newer. Install a newer Node and start again.`,
    );
}

/**
 * Compares what the lockfile asks for with what npm noted when it installed. Times say nothing after a checkout, versions
 * do. Optional packages may be absent: they are for other systems.
 */
export function installNeeded(lock, installed) {
  if (!installed) return true;
  const wanted = Object.entries(lock.packages ?? {}).filter(([path]) => path !== "");
  const present = installed.packages ?? {};
  if (
    wanted.some(([path, { version, optional, peer }]) =>
      present[path] ? present[path].version !== version : !(optional || peer),
    )
  )
    return true;
  const known = new Set(wanted.map(([path]) => path));
  return Object.entries(present).some(([path, { optional }]) => !known.has(path) && !optional);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** npm, as the npm that started us, so that both are the same version. */
function npm(args, options) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith(".js") ? run(process.execPath, [cli, ...args], options) : run("npm", args, options);
}

export async function installPackages(folder = root, what = "packages") {
  const lock = readJson(join(folder, "package-lock.json"));
  if (!lock) throw new StepFailed(`${join(folder, "package-lock.json")} is missing: this clone is not complete.`);
  if (!installNeeded(lock, readJson(join(folder, "node_modules/.package-lock.json")))) return;
  await step(`Installing ${what}`, async () => {
    const common = ["--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
    try {
      await npm(["ci", ...common], { cwd: folder });
    } catch (error) {
      // A lockfile written on one system may lack optional packages of another. `ci` refuses it then; this takes the same
      // locked versions, adds what this system needs, and leaves the lockfile as it is.
      if (!error.output?.includes("EUSAGE")) throw offline(error);
      await npm(["install", "--no-save", ...common], { cwd: folder }).catch((second) => {
        throw offline(second);
      });
    }
  });
}

function offline(error) {
  return new StepFailed("The packages could not be installed: see above. Is this machine online?", {
    output: error.output,
  });
}

export function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesUnder(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

/** One hash over the names, sizes and times of everything the build reads. */
export function fingerprint(files) {
  const hash = createHash("sha256");
  for (const file of [...files].sort()) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

function sources() {
  return [
    ...filesUnder(join(root, "src")).filter((file) => !file.endsWith(".test.ts")),
    ...["package-lock.json", "tsconfig.json", "tsconfig.build.json"].map((name) => join(root, name)),
  ];
}

const dist = join(root, "dist");
export const pages = join(dist, "dashboard");
const stamp = join(dist, ".fingerprint");

export function buildIsCurrent() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint(sources());
}

/** Copies what the compiler leaves out: scripts for Redis and other files that the code reads at run time. */
export function copyAssets(from, to) {
  for (const file of filesUnder(from)) {
    if (file.endsWith(".ts")) continue;
    const target = join(to, relative(from, file));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(file, target);
  }
}

/** Compiles into a folder beside dist and swaps it in whole, so that a running Carillon never sees half a build. */
export async function compile() {
  const print = fingerprint(sources());
  const draft = join(root, "node_modules", ".cache", `dist-${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(dirname(draft), { recursive: true });
  try {
    await run(
      process.execPath,
      [
        join(root, "node_modules/typescript/bin/tsc"),
        ...["-p", "tsconfig.build.json", "--outDir", draft, "--tsBuildInfoFile", join(draft, ".tsbuildinfo")],
      ],
      { failure: "The sources do not compile: see above." },
    );
    rmSync(join(draft, ".tsbuildinfo"), { force: true });
    copyAssets(join(root, "src"), draft);
    writeFileSync(join(draft, ".fingerprint"), print);
    // The web pages are built by themselves and stay as they are.
    if (existsSync(pages)) renameSync(pages, join(draft, "dashboard"));
    rmSync(dist, { recursive: true, force: true });
    renameSync(draft, dist);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** What the sources compile to, and the web pages beside it. */
export async function build() {
  if (!buildIsCurrent()) await step("Building", compile);
  await buildPages();
}

/** Everything that `npm start` needs before Carillon can run. */
export async function setUp({ redis = "unless-configured" } = {}) {
  checkNode();
  await installPackages();
  if (redis === "always" || !bringsOwnRedis()) await step("Looking for Redis", prepareRedis);
}
