import { mkdirSync } from "node:fs";
import { type Database, open, type RootDatabase } from "lmdb";
import type { Clock } from "../../kernel/clock.ts";

export interface DiskEntry {
  readonly value: Buffer;
  readonly checkedAt: number;
  readonly expiresAt: number;
}

const HEAD_BYTES = 16;
const SWEEP_SECONDS = 3600;
const SWEEP_STEP = 500;
/** LMDB refuses longer keys; such ids are simply not kept on disk. */
const LONGEST_KEY = 1900;

/**
 * The layer on this instance's disk: one LMDB environment, one database per tag, so that evicting a tag is one step
 * however much it holds. An entry is `f64 expires_at, f64 checked_at, value`.
 *
 * LMDB writes in the background and reads what is committed. What is not committed yet is kept in `#unsettled`, so that
 * a purged entry is gone for readers at once, not some milliseconds later.
 */
export class DiskLayer {
  readonly #root: RootDatabase<Buffer, string>;
  readonly #clock: Clock;
  readonly #tags = new Map<string, Database<Buffer, string>>();
  readonly #unsettled = new Map<string, { readonly raw: Buffer | undefined }>();
  readonly #stopSweeping: () => void;

  constructor(directory: string, clock: Clock) {
    mkdirSync(directory, { recursive: true });
    this.#clock = clock;
    this.#root = open<Buffer, string>({ path: directory, maxDbs: 32, encoding: "binary" });
    this.#stopSweeping = clock.every(SWEEP_SECONDS, async () => void (await this.sweep()));
  }

  read(tag: string, key: string): DiskEntry | undefined {
    if (key.length > LONGEST_KEY) return undefined;
    const name = `${tag} ${key}`;
    const unsettled = this.#unsettled.get(name);
    const raw = unsettled ? unsettled.raw : this.#tag(tag).getBinary(key);
    if (!raw || raw.length < HEAD_BYTES) return undefined;
    const expiresAt = raw.readDoubleBE(0);
    if (expiresAt <= this.#clock.now()) return undefined;
    return { value: raw.subarray(HEAD_BYTES), checkedAt: raw.readDoubleBE(8), expiresAt };
  }

  write(tag: string, key: string, entry: DiskEntry): void {
    if (key.length > LONGEST_KEY) return;
    const raw = Buffer.allocUnsafe(HEAD_BYTES + entry.value.length);
    raw.writeDoubleBE(entry.expiresAt, 0);
    raw.writeDoubleBE(entry.checkedAt, 8);
    entry.value.copy(raw, HEAD_BYTES);
    this.#settle(tag, key, raw, this.#tag(tag).put(key, raw));
  }

  remove(tag: string, key: string): void {
    if (key.length > LONGEST_KEY) return;
    this.#settle(tag, key, undefined, this.#tag(tag).remove(key));
  }

  /** Removes the entries under a prefix that were read before a time; without a time, all of them. */
  removeAll(tag: string, prefix: string, minCheckedAt: number | undefined): void {
    const unsettled = [...this.#unsettled.keys()].map((name) => name.slice(tag.length + 1));
    const committed = this.#tag(tag).getKeys({ start: prefix, end: `${prefix}\uffff` });
    for (const key of new Set([...unsettled.filter((key) => key.startsWith(prefix)), ...committed])) {
      const entry = this.read(tag, key);
      if (!entry || minCheckedAt === undefined || entry.checkedAt <= minCheckedAt) this.remove(tag, key);
    }
  }

  /** Empties a tag; done when this returns. */
  evict(tag: string): void {
    // A write still under way would come back after the clearing; a removal queued behind it does not let it.
    for (const name of this.#unsettled.keys())
      if (name.startsWith(`${tag} `)) this.remove(tag, name.slice(tag.length + 1));
    this.#tag(tag).clearSync();
  }

  /** Removes what has expired, some hundred entries at a time so that nobody waits for it. */
  async sweep(): Promise<number> {
    const now = this.#clock.now();
    let removed = 0;
    for (const database of this.#tags.values()) {
      let start = "";
      for (;;) {
        const page = [...database.getRange({ start, limit: SWEEP_STEP })];
        const expired = page.filter(({ value }) => value.length < HEAD_BYTES || value.readDoubleBE(0) <= now);
        await Promise.all(expired.map(({ key }) => database.remove(key)));
        removed += expired.length;
        if (page.length < SWEEP_STEP) break;
        start = `${page.at(-1)!.key}\u0000`;
      }
    }
    return removed;
  }

  async close(): Promise<void> {
    this.#stopSweeping();
    await this.#root.close();
  }

  #settle(tag: string, key: string, raw: Buffer | undefined, written: Promise<boolean>): void {
    const name = `${tag} ${key}`;
    const unsettled = { raw };
    this.#unsettled.set(name, unsettled);
    const done = () => {
      if (this.#unsettled.get(name) === unsettled) this.#unsettled.delete(name);
    };
    // A disk that refuses writes makes the cache slower, not wrong: removals stay remembered in memory.
    written.then(done, () => {
      if (raw !== undefined) done();
    });
  }

  #tag(tag: string): Database<Buffer, string> {
    const known = this.#tags.get(tag);
    if (known) return known;
    const opened = this.#root.openDB<Buffer, string>({ name: tag, encoding: "binary" });
    this.#tags.set(tag, opened);
    return opened;
  }
}
