import type { Readable } from "node:stream";
import type { Clock } from "../kernel/clock.ts";
import { type ObjectStore, objectStoreErrors, readAll } from "../providers/object-store.ts";
import { seededRandom } from "./seeded-random.ts";

export type StoreOperation = "put" | "get" | "head" | "delete" | "list";

/** What an operation fails with: a fault that may pass, or one that will not. */
export type StoreFault = "SlowDown" | "InternalError" | "Timeout" | "AccessDenied" | "NoSuchBucket";

const PERMANENT: readonly StoreFault[] = ["AccessDenied", "NoSuchBucket"];

/** The faults to inject; all rates are from 0 to 1. They may be changed while the store is in use. */
export interface StoreKnobs {
  /** How often an operation fails without effect, and with what. */
  failures?: Partial<Record<StoreOperation, { readonly rate: number; readonly fault: StoreFault }>>;
  /** Seconds that every operation takes, somewhere between these. */
  latency?: { readonly min: number; readonly max: number };
  /** How often a put keeps only the first half of its bytes and says that all went well. */
  truncated?: number;
  /** How often a put or delete is done and the reply does not arrive. */
  replyLost?: number;
  /** Between these times no operation gets credentials. */
  credentialOutage?: { readonly from: number; readonly until: number };
  /** Seconds during which a new object cannot be seen. */
  hiddenWhileFresh?: number;
}

/**
 * An object store with faults. It wraps a real one and gives the errors that a caller sees once the store's own attempts
 * are used up. The same seed and the same calls give the same faults.
 */
export class FaultyObjectStore implements ObjectStore {
  knobs: StoreKnobs;
  /** How many operations were disturbed, so that a test knows that it tested something. */
  injected = 0;
  readonly #store: ObjectStore;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #bornAt = new Map<string, number>();

  constructor(store: ObjectStore, options: { clock: Clock; seed: number; knobs?: StoreKnobs }) {
    this.#store = store;
    this.#clock = options.clock;
    this.#random = seededRandom(options.seed);
    this.knobs = options.knobs ?? {};
  }

  get bucket(): string {
    return this.#store.bucket;
  }

  async put(key: string, content: Buffer | Readable, options: { contentType: string; size?: number }): Promise<void> {
    await this.#disturb("put");
    if (this.#happens(this.knobs.truncated)) {
      const bytes = Buffer.isBuffer(content) ? content : await readAll(content);
      await this.#store.put(key, bytes.subarray(0, Math.floor(bytes.length / 2)), options);
    } else await this.#store.put(key, content, options);
    this.#bornAt.set(key, this.#clock.now());
    this.#loseReply();
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Readable> {
    await this.#disturb("get");
    if (this.#isHidden(key)) throw objectStoreErrors.object_not_found();
    return this.#store.get(key, range);
  }

  async head(key: string): Promise<{ size: number; contentType: string } | undefined> {
    await this.#disturb("head");
    return this.#isHidden(key) ? undefined : this.#store.head(key);
  }

  async delete(key: string): Promise<void> {
    await this.#disturb("delete");
    await this.#store.delete(key);
    this.#loseReply();
  }

  async *list(prefix: string): AsyncIterable<{ key: string; size: number; modifiedAt: number }> {
    await this.#disturb("list");
    for await (const entry of this.#store.list(prefix)) if (!this.#isHidden(entry.key)) yield entry;
  }

  async #disturb(operation: StoreOperation): Promise<void> {
    const { latency, credentialOutage, failures } = this.knobs;
    if (latency) await this.#clock.sleep(latency.min + (latency.max - latency.min) * this.#random());
    const now = this.#clock.now();
    if (credentialOutage && now >= credentialOutage.from && now < credentialOutage.until) {
      this.injected += 1;
      throw faultOf("no credentials");
    }
    const failure = failures?.[operation];
    if (failure && this.#happens(failure.rate)) throw faultOf(failure.fault);
  }

  #loseReply(): void {
    if (this.#happens(this.knobs.replyLost)) throw faultOf("the reply was lost");
  }

  #isHidden(key: string): boolean {
    const { hiddenWhileFresh } = this.knobs;
    const bornAt = this.#bornAt.get(key);
    if (hiddenWhileFresh === undefined || bornAt === undefined) return false;
    return this.#clock.now() - bornAt < hiddenWhileFresh;
  }

  #happens(rate: number | undefined): boolean {
    if (rate === undefined || this.#random() >= rate) return false;
    this.injected += 1;
    return true;
  }
}

function faultOf(message: string): Error {
  return (PERMANENT as readonly string[]).includes(message)
    ? objectStoreErrors.file_store_refused({ message })
    : objectStoreErrors.file_store_unavailable({ message, retryAfter: 5 });
}
