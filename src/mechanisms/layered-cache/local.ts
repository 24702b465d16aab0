import type { Clock } from "../../kernel/clock.ts";
import type { DiskLayer } from "./disk.ts";
import { type CachePlan, COLLAB } from "./plan.ts";
import { RecentMap } from "./recent.ts";

const REMEMBERED_PURGES = 10_000;
const DEFAULT_ENTRIES = 10_000;

export interface LocalEntry<Value> {
  readonly value: Value;
  /** When the source was read; 0 when nobody knows, so that any purge and any fill is newer. */
  readonly checkedAt: number;
  readonly expiresAt: number;
}

/**
 * What this process holds of one family: memory, and behind it the disk of the instance. It also remembers the latest
 * purges, so that a fill frame which was read before one and arrives after it cannot bring the old value back.
 */
export class LocalLayers<Value> {
  readonly tag: string;
  readonly #plan: CachePlan<Value>;
  readonly #clock: Clock;
  readonly #disk: DiskLayer | undefined;
  readonly #memory: RecentMap<LocalEntry<Value>>;
  readonly #purgedAt = new RecentMap<number>(REMEMBERED_PURGES);
  readonly hits = { memory: 0, disk: 0 };

  constructor(plan: CachePlan<Value>, clock: Clock, disk: DiskLayer | undefined) {
    this.#plan = plan;
    this.#clock = clock;
    this.#disk = plan.disk === false ? undefined : disk;
    this.#memory = new RecentMap(plan.maxEntries ?? DEFAULT_ENTRIES);
    this.tag = plan.tag ?? COLLAB;
  }

  read(id: string): LocalEntry<Value> | undefined {
    const entry = this.#memory.get(id);
    if (entry !== undefined && entry.expiresAt > this.#clock.now()) {
      this.hits.memory += 1;
      return entry;
    }
    const stored = this.#readDisk(id);
    if (stored !== undefined) this.hits.disk += 1;
    return stored;
  }

  /** Keeps what a frame says unless it is older than what is held, or older than a purge; says whether it was kept. */
  keepPushed(id: string, value: Value, checkedAt: number): boolean {
    const purgedAt = this.#purgedAt.get(id);
    if (purgedAt !== undefined && checkedAt < purgedAt) return false;
    return this.keepRead(id, value, checkedAt);
  }

  /** Keeps what this process read itself unless a newer value is held; purges meanwhile are the caller's to watch for. */
  keepRead(id: string, value: Value, checkedAt: number): boolean {
    if (checkedAt < (this.#held(id)?.checkedAt ?? 0)) return false;
    this.replace(id, value, checkedAt);
    return true;
  }

  /** Keeps a value whatever is held: for frames that carry no time and are true in the order they come. */
  replace(id: string, value: Value, checkedAt: number): void {
    const now = this.#clock.now();
    // A value ages from when it was read, not from when a frame brought it here; a clock ahead of ours gains nothing.
    const readAt = checkedAt === 0 ? now : Math.min(checkedAt, now);
    const entry = { value, checkedAt, expiresAt: readAt + this.#plan.ttl };
    this.#memory.set(id, entry);
    this.#disk?.write(this.tag, this.#diskKey(id), { ...entry, value: toBuffer(this.#plan.codec.encode(value)) });
  }

  /**
   * Drops what was read before `minCheckedAt`; without a time, whatever is there. What was read in that very tick of the
   * clock goes too, since nobody can say which came first.
   */
  purge(id: string, minCheckedAt: number | undefined): void {
    if (minCheckedAt !== undefined) {
      this.#purgedAt.set(id, Math.max(minCheckedAt, this.#purgedAt.get(id) ?? 0));
      if ((this.#held(id)?.checkedAt ?? 0) > minCheckedAt) return;
    }
    this.#memory.delete(id);
    this.#disk?.remove(this.tag, this.#diskKey(id));
  }

  purgeAll(minCheckedAt: number | undefined): void {
    if (minCheckedAt === undefined) this.#memory.clear();
    else
      for (const [id, entry] of [...this.#memory.entries()])
        if (entry.checkedAt <= minCheckedAt) this.#memory.delete(id);
    this.#disk?.removeAll(this.tag, this.#diskKey(""), minCheckedAt);
  }

  /** Forgets the memory; the disk is emptied by its tag, once for all families. */
  evict(): void {
    this.#memory.clear();
  }

  #held(id: string): LocalEntry<Value> | undefined {
    const entry = this.#memory.get(id);
    return entry !== undefined && entry.expiresAt > this.#clock.now() ? entry : this.#readDisk(id);
  }

  #readDisk(id: string): LocalEntry<Value> | undefined {
    const disk = this.#disk;
    const stored = disk?.read(this.tag, this.#diskKey(id));
    if (!disk || !stored) return undefined;
    try {
      const entry = { ...stored, value: this.#plan.codec.decode(stored.value) };
      this.#memory.set(id, entry);
      return entry;
    } catch {
      // Written by another version of this program: as good as not there.
      disk.remove(this.tag, this.#diskKey(id));
      return undefined;
    }
  }

  #diskKey(id: string): string {
    return `${this.#plan.name} ${id}`;
  }
}

export function toBuffer(encoded: string | Buffer): Buffer {
  return typeof encoded === "string" ? Buffer.from(encoded, "utf8") : encoded;
}
