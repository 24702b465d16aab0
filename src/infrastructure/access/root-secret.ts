import { hkdfSync, randomBytes } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../kernel/config.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { errors } from "./errors.ts";
import { settings } from "./settings.ts";

const FILE = "root_secret";
const SHORTEST = 32;
const derived = new WeakMap<Config, Map<string, Uint8Array>>();

/**
 * The configuration with a root secret in it: the one that was set, else the one in the data folder, which is made on
 * the first start. Processes that start at once agree, because only one of them can give the file its name.
 */
export function withRootSecret(config: Config, directory: string): Config {
  const given = config.get(settings.rootSecret);
  if (given !== undefined) {
    if (given.length < SHORTEST)
      throw kernelErrors.invalid_settings({
        message: `${settings.rootSecret.env} must have at least ${SHORTEST} characters.`,
      });
    return config;
  }
  if (config.get(settings.environment) === "production") throw errors.root_secret_required();
  const path = join(directory, FILE);
  const kept = readSecret(path) ?? makeSecret(directory, path);
  return config.with([settings.rootSecret, kept]);
}

function readSecret(path: string): string | undefined {
  let written: string;
  try {
    written = readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  if (written.length < SHORTEST)
    throw kernelErrors.invalid_settings({
      message: `${path} holds no root secret; restore it, or remove it to end every token that was issued.`,
    });
  chmodSync(path, 0o600);
  return written;
}

function makeSecret(directory: string, path: string): string {
  mkdirSync(directory, { recursive: true });
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  writeFileSync(draft, `${randomBytes(48).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
  return readSecret(path)!;
}

/** A 256-bit key for one purpose; keys of different purposes say nothing about each other or about the root secret. */
export function deriveKey(ctx: { readonly config: Config }, purpose: string): Uint8Array {
  const root = ctx.config.get(settings.rootSecret);
  if (root === undefined) throw errors.root_secret_required({ message: "No root secret was set up at start." });
  const keys = derived.get(ctx.config) ?? new Map<string, Uint8Array>();
  derived.set(ctx.config, keys);
  const known = keys.get(purpose);
  if (known) return known;
  const key = new Uint8Array(hkdfSync("sha256", root, "carillon", purpose, 32));
  keys.set(purpose, key);
  return key;
}
