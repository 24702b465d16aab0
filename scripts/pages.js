// Builds the web pages of dashboard/ into dist/dashboard, if anything they are made of has changed.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { filesUnder, fingerprint, installPackages, pages } from "./setup.js";
import { root, run, step } from "./steps.js";

const dashboard = join(root, "dashboard");
const stamp = () => join(pages, ".fingerprint");

/** The pages are made of their own sources and of the client that they speak through. */
function sources() {
  return [
    ...filesUnder(join(dashboard, "src")),
    ...filesUnder(join(root, "src/client")).filter((file) => !file.endsWith(".test.ts")),
    ...["admin.html", "sandbox.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"].map(
      (name) => join(dashboard, name),
    ),
  ];
}

export function pagesAreCurrent() {
  return existsSync(stamp()) && readFileSync(stamp(), "utf8") === fingerprint(sources());
}

/** Builds beside the folder and swaps it in whole, as the compiler's output is. */
async function draw() {
  const print = fingerprint(sources());
  const draft = join(root, "node_modules", ".cache", `pages-${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  try {
    await run(
      process.execPath,
      [join(dashboard, "node_modules/vite/bin/vite.js"), "build", "--outDir", draft, "--logLevel", "warn"],
      { cwd: dashboard, env: { NODE_ENV: "production" }, failure: "The web pages cannot be built: see above." },
    );
    compress(join(draft, "assets"));
    writeFileSync(join(draft, ".fingerprint"), print);
    mkdirSync(dirname(pages), { recursive: true });
    swapIn(draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Processes may build at once, and a server may read what another has built: pages that are current are never touched. */
function swapIn(draft) {
  if (pagesAreCurrent()) return;
  const old = `${draft}-old`;
  try {
    if (existsSync(pages)) renameSync(pages, old);
    renameSync(draft, pages);
  } catch (error) {
    // Another process was faster; the same sources make the same pages.
    if (!pagesAreCurrent()) throw error;
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

/** Once here instead of once a visit: what every browser takes, beside what it is made from. */
function compress(folder) {
  for (const file of filesUnder(folder)) {
    if (!/\.(js|css|svg|json)$/.test(file)) continue;
    const plain = readFileSync(file);
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
    writeFileSync(`${file}.br`, brotliCompressSync(plain, quality));
    writeFileSync(`${file}.gz`, gzipSync(plain, { level: 9 }));
  }
}

export async function buildPages() {
  if (pagesAreCurrent()) return;
  await installPackages(dashboard, "the dashboard's packages");
  await step("Building the dashboard", draw);
}
