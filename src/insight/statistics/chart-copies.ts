import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import type { Clock } from "../../kernel/clock.ts";
import { DiskLayer } from "../../mechanisms/layered-cache/index.ts";

/** A chart as it is kept and served. */
export interface ChartCopy {
  /** Gzip of the chart's JSON. */
  readonly blob: Buffer;
  readonly etag: string;
  /** Still changing: kept for a minute and told to nobody. */
  readonly provisional: boolean;
  readonly expiresAt: number;
}

const MOST_COPIES = 256;
const MOST_BYTES = 32 * 1024 * 1024;
/** A frame of the greatest size may hold at most this much once it is unpacked. */
const MOST_UNPACKED = 256 * 1024 * 1024;
const TAG = "charts";

/** Forgets the charts that an instance keeps in this folder, whether it runs or not. */
export async function forgetCharts(folder: string, clock: Clock): Promise<void> {
  const disk = new DiskLayer(folder, clock);
  disk.evict(TAG);
  await disk.close();
}

/** The chart's JSON; undefined when the bytes are no gzip after all. */
export function unpack(blob: Buffer): Buffer | undefined {
  try {
    return gunzipSync(blob, { maxOutputLength: MOST_UNPACKED });
  } catch {
    return undefined;
  }
}

/** Says the same of the same chart on every instance: how it was compressed does not matter. */
export function etagOf(json: Buffer): string {
  return `W/"${createHash("sha256").update(json).digest("base64url").slice(0, 22)}"`;
}

/**
 * The charts that this instance has at hand: the latest in memory, all on its disk. Provisional ones stay in memory only.
 * Copies are never wrong, because a finished day does not change; they end at the next midnight, when another day is
 * finished, so a restart may serve what the disk holds.
 */
export class ChartCopies {
  readonly #clock: Clock;
  readonly #disk: DiskLayer | undefined;
  /** In the order of their last use. */
  readonly #memory = new Map<string, ChartCopy>();
  #bytes = 0;

  constructor(clock: Clock, disk: DiskLayer | undefined) {
    this.#clock = clock;
    this.#disk = disk;
  }

  get size(): number {
    return this.#memory.size;
  }

  find(name: string): ChartCopy | undefined {
    const held = this.#memory.get(name);
    this.#forget(name);
    const copy = held && held.expiresAt > this.#clock.now() ? held : this.#fromDisk(name);
    if (copy) this.#remember(name, copy);
    return copy;
  }

  keep(name: string, copy: ChartCopy): void {
    this.#forget(name);
    this.#remember(name, copy);
    if (!copy.provisional)
      this.#disk?.write(TAG, name, { value: copy.blob, checkedAt: this.#clock.now(), expiresAt: copy.expiresAt });
  }

  #fromDisk(name: string): ChartCopy | undefined {
    const stored = this.#disk?.read(TAG, name);
    // What LMDB gives belongs to its next transaction; what is kept has to be ours.
    const blob = stored && Buffer.from(stored.value);
    const json = blob && unpack(blob);
    return json && { blob: blob!, etag: etagOf(json), provisional: false, expiresAt: stored!.expiresAt };
  }

  #remember(name: string, copy: ChartCopy): void {
    this.#memory.set(name, copy);
    this.#bytes += copy.blob.length;
    for (const oldest of this.#memory.keys()) {
      if (this.#memory.size <= MOST_COPIES && this.#bytes <= MOST_BYTES) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#bytes -= this.#memory.get(name)?.blob.length ?? 0;
    this.#memory.delete(name);
  }
}
