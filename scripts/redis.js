// Finds a Redis or Valkey server on this machine, or installs one with the system's package manager, saying so.
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { root, run, StepFailed, say } from "./steps.js";

const SERVERS = ["redis-server", "valkey-server"];
export const LEAST_VERSION = [7, 0];

/** Each package manager: how it installs a package, how it refreshes its list, what the package may be called. */
export const MANAGERS = [
  {
    program: "apt-get",
    install: (name) => ["install", "-y", "--no-install-recommends", name],
    refresh: ["update"],
    packages: ["redis-server", "valkey-server"],
    // Carillon runs a server of its own; the package must not start one as a service too.
    environment: ["DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"],
  },
  { program: "dnf", install: (name) => ["install", "-y", name], packages: ["redis", "valkey"] },
  { program: "apk", install: (name) => ["add", name], refresh: ["update"], packages: ["redis", "valkey"] },
  {
    program: "pacman",
    install: (name) => ["-S", "--noconfirm", name],
    refresh: ["-Sy"],
    packages: ["valkey", "redis"],
  },
  { program: "brew", install: (name) => ["install", name], packages: ["redis", "valkey"], asUser: true },
];

export function findOnPath(names, path = process.env.PATH ?? "") {
  for (const folder of [...path.split(delimiter), "/usr/sbin", "/usr/local/sbin"].filter(Boolean))
    for (const name of names)
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {}
  return undefined;
}

/** `Redis server v=7.2.4 sha=…` and `Valkey server v=8.0.1 …` alike. */
export function parseVersion(text) {
  const found = /\bv=(\d+)\.(\d+)/.exec(text);
  return found ? [Number(found[1]), Number(found[2])] : undefined;
}

export function recentEnough(version) {
  if (!version) return true;
  return version[0] > LEAST_VERSION[0] || (version[0] === LEAST_VERSION[0] && version[1] >= LEAST_VERSION[1]);
}

/** How to become allowed to install: nothing for root and brew, `sudo -n` where it needs no password. */
export function elevation({ manager, isRoot, hasSudo }) {
  if (manager.asUser || isRoot) return [];
  return hasSudo ? ["sudo", "-n"] : undefined;
}

/** True when the person brings a Redis of their own, in the environment or in .env. */
export function bringsOwnRedis(environment = process.env, folder = process.cwd()) {
  if (environment.REDIS_URL) return true;
  try {
    return /^\s*(?:export\s+)?REDIS_URL\s*=\s*\S/m.test(readFileSync(join(folder, ".env"), "utf8"));
  } catch {
    return false;
  }
}

const WAYS_OUT = `There are two ways out:
  1. install Redis 7 (or Valkey) yourself, so that redis-server or valkey-server is on PATH, and start again; or
  2. run Redis anywhere and say where: REDIS_URL=redis://host:6379 npm start`;

export async function prepareRedis() {
  const found = findOnPath(SERVERS);
  if (found) return checked(found);
  await install({ what: "redis-server", packagesOf: (manager) => manager.packages, waysOut: WAYS_OUT });
  const installed = findOnPath(SERVERS);
  if (!installed) throw new StepFailed(`Redis was installed, but no redis-server is on PATH.\n${WAYS_OUT}`);
  return checked(installed);
}

async function checked(path) {
  const version = parseVersion(await run(path, ["--version"]).catch(() => ""));
  if (!recentEnough(version))
    throw new StepFailed(`${path} is version ${version.join(".")}; Carillon needs 7.0 or newer.\n${WAYS_OUT}`);
  return version ? `${path}, version ${version.join(".")}` : path;
}

/** Installs one program with the system's package manager, under the first of its names that is known there. */
export async function install({ what, packagesOf, waysOut }) {
  const manager = MANAGERS.find(({ program }) => findOnPath([program]));
  if (!manager) throw new StepFailed(`No ${what} is on PATH, and no known package manager is here.\n${waysOut}`);
  const isRoot = process.getuid?.() === 0;
  const hasSudo =
    !isRoot &&
    (await run("sudo", ["-n", "true"]).then(
      () => true,
      () => false,
    ));
  const prefix = elevation({ manager, isRoot, hasSudo });
  if (!prefix)
    throw new StepFailed(
      `No ${what} is on PATH, and installing it with ${manager.program} needs root or a sudo without password.\n${waysOut}`,
    );
  say(`  no ${what} on PATH: installing it with ${[...prefix, manager.program].join(" ")}`);
  const call = (args) => {
    const [command, ...rest] = [...prefix, "env", ...(manager.environment ?? []), manager.program, ...args];
    return run(command, rest, { cwd: root });
  };
  const tryAll = async () => {
    let last;
    for (const name of packagesOf(manager))
      try {
        await call(manager.install(name));
        return undefined;
      } catch (error) {
        last = error;
      }
    return last;
  };
  let failed = await tryAll();
  if (failed && manager.refresh) {
    await call(manager.refresh).catch(() => {});
    failed = await tryAll();
  }
  if (failed)
    throw new StepFailed(`${what} could not be installed with ${manager.program}.\n${waysOut}`, {
      output: failed.output,
    });
}
