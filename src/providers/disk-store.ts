import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { Clock } from "../kernel/clock.ts";
import { randomToken } from "../kernel/ids.ts";
import { type ObjectStore, objectStoreErrors, requireObjectKey } from "./object-store.ts";

/** Marks a file that holds an object; no key can contain it, so key `a` and key `a/b` live side by side. */
const CONTENT = "~";
const CONTENT_TYPE = "~type";
const INCOMING = "~incoming";
const STALE_INCOMING = 86_400;
const RENAME_ATTEMPTS = 5;

/**
 * A folder as an object store: key `a/b` is the file `a/b~`, with its content type in `a/b~type`.
 *
 * The content's file is authoritative. It is written in full beside the objects, flushed, and appears under its name by
 * one rename, so a reader sees all of an object or nothing. A crash before the rename leaves a file among the incoming
 * ones, which the next `open` removes once it is a day old, or a content type without content, which nobody looks at.
 */
export class DiskStore implements ObjectStore {
  readonly bucket: string;
  readonly #root: string;

  private constructor(directory: string, bucket: string) {
    this.bucket = bucket;
    this.#root = join(directory, bucket);
  }

  static async open(options: { directory: string; bucket: string; clock: Clock }): Promise<DiskStore> {
    if (!/^[a-z0-9][a-z0-9.-]{1,62}$/.test(options.bucket))
      throw objectStoreErrors.file_store_refused({ message: `${options.bucket} is not a name for a bucket` });
    const store = new DiskStore(options.directory, options.bucket);
    await store.#removeStaleIncoming(options.clock.now());
    return store;
  }

  async put(key: string, content: Buffer | Readable, options: { contentType: string }): Promise<void> {
    const path = this.#path(key);
    await asStoreErrors(async () => {
      const incoming = join(this.#root, INCOMING, randomToken());
      try {
        await writeFlushed(`${incoming}.type`, Buffer.from(options.contentType));
        await writeFlushed(incoming, content);
        await moveInto(`${incoming}.type`, path + CONTENT_TYPE);
        await moveInto(incoming, path + CONTENT);
        await flushFolder(dirname(path));
      } finally {
        await rm(incoming, { force: true });
        await rm(`${incoming}.type`, { force: true });
      }
    });
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Readable> {
    const path = this.#path(key) + CONTENT;
    return asStoreErrors(async () => {
      const { size } = await stat(path);
      if (range && range.start >= size)
        throw objectStoreErrors.file_store_refused({
          message: `${key} has ${size} bytes, none from ${range.start} on`,
        });
      const handle = await open(path, "r");
      return createReadStream(path, { fd: handle, start: range?.start ?? 0, end: range?.end });
    });
  }

  async head(key: string): Promise<{ size: number; contentType: string } | undefined> {
    const path = this.#path(key);
    try {
      return await asStoreErrors(async () => {
        const { size } = await stat(path + CONTENT);
        return { size, contentType: await readFile(path + CONTENT_TYPE, "utf8") };
      });
    } catch (error) {
      if (objectStoreErrors.object_not_found.matches(error)) return undefined;
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    const path = this.#path(key);
    await asStoreErrors(async () => {
      await rm(path + CONTENT, { force: true });
      await rm(path + CONTENT_TYPE, { force: true });
      await this.#removeEmptyFolders(dirname(path));
    });
  }

  async *list(prefix: string): AsyncIterable<{ key: string; size: number; modifiedAt: number }> {
    const found: { key: string; size: number; modifiedAt: number }[] = [];
    await asStoreErrors(() => this.#walk("", prefix, found));
    found.sort((a, b) => (a.key < b.key ? -1 : 1));
    yield* found;
  }

  #path(key: string): string {
    return join(this.#root, requireObjectKey(key));
  }

  async #walk(folder: string, prefix: string, found: { key: string; size: number; modifiedAt: number }[]) {
    const entries = await unlessMissing(readdir(join(this.#root, folder), { withFileTypes: true }));
    for (const entry of entries ?? []) {
      const key = folder + entry.name.replace(/~$/, "");
      if (entry.isDirectory()) {
        const below = `${key}/`;
        const related = below.startsWith(prefix) || prefix.startsWith(below);
        if (entry.name !== INCOMING && related) await this.#walk(below, prefix, found);
      } else if (entry.name.endsWith(CONTENT) && key.startsWith(prefix)) {
        const facts = await unlessMissing(stat(join(this.#root, folder, entry.name)));
        if (facts) found.push({ key, size: facts.size, modifiedAt: facts.mtimeMs / 1000 });
      }
    }
  }

  async #removeEmptyFolders(folder: string): Promise<void> {
    for (let at = folder; at.length > this.#root.length; at = dirname(at))
      try {
        await rmdir(at);
      } catch {
        return;
      }
  }

  async #removeStaleIncoming(now: number): Promise<void> {
    const folder = join(this.#root, INCOMING);
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(folder)) {
      const facts = await unlessMissing(stat(join(folder, name)));
      if (facts && facts.mtimeMs / 1000 < now - STALE_INCOMING) await rm(join(folder, name), { force: true });
    }
  }
}

async function writeFlushed(path: string, content: Buffer | Readable): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await openInFolder(path);
    if (Buffer.isBuffer(content)) await handle.writeFile(content);
    else for await (const chunk of content) await handle.writeFile(chunk);
    await handle.sync();
  } finally {
    await handle?.close();
    if (content instanceof Readable) content.destroy();
  }
}

/** Somebody may have removed the folder by hand while the process runs; it is made again. */
async function openInFolder(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx");
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    await mkdir(dirname(path), { recursive: true });
    return open(path, "wx");
  }
}

/** A delete may remove the empty folder between its creation and the rename: then both are done again. */
async function moveInto(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await mkdir(dirname(to), { recursive: true });
    try {
      return await rename(from, to);
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || attempt >= RENAME_ATTEMPTS) throw error;
    }
  }
}

/** The rename itself must survive a power cut, because a row will soon say that the file is stored. */
async function flushFolder(folder: string): Promise<void> {
  const handle = await unlessMissing(open(folder, "r"));
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** A disk that is full or gone may come back: everything but a missing file and a wrong permission is transient. */
async function asStoreErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") throw objectStoreErrors.object_not_found({ cause: error });
    if (code === "EACCES" || code === "EPERM" || code === "EROFS" || code === "ENAMETOOLONG")
      throw objectStoreErrors.file_store_refused({ cause: error });
    if (code?.startsWith("E") && !code.startsWith("ERR_"))
      throw objectStoreErrors.file_store_unavailable({ cause: error });
    throw error;
  }
}
