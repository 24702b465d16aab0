import type { KernelContext } from "../../kernel/context.ts";
import type { DiskLayer } from "./disk.ts";
import { type Echo, FillFence } from "./fence.ts";
import { Flight } from "./flight.ts";
import { LocalLayers } from "./local.ts";
import type { CacheMessage, CachePlan } from "./plan.ts";

const PATIENCE_SECONDS = 3;
const MOST_ROUNDS = 2;
const BATCH = 500;

/** What a cache needs of the process around it. */
export interface CacheSurroundings {
  readonly context: Pick<KernelContext, "clock" | "cacheRedis" | "alerts" | "log">;
  readonly disk: DiskLayer | undefined;
  caughtUp(): Promise<void>;
  expectEcho(): Echo;
  noteMalformed(place: string, error: unknown): void;
}

/**
 * One family's values, nearest layer first: memory, disk, Redis, source. A hit fills the layers before it.
 *
 * The source is authoritative. Between it and the layers stand three guards, so that a purged value never comes back:
 *   1. The fence. A filler holds a lock with a token beside it; a purge removes both, and then finishing the fill does
 *      nothing. Redis thereby orders fills and purges of an id, and every process applies frames in that order.
 *   2. Times. A fill says when the source was read, a purge from when on values are good; older ones are dropped.
 *   3. Striking. A purge strikes the flights that are reading, whose values are then answered but not kept.
 *
 * What a crash leaves: a filler that dies leaves its lock for at most 3 s, then one of those who wait takes over. A frame
 * that is lost costs one more source read. A purge that dies before its script did nothing; after it, everything.
 */
export class LayeredCache<Value> {
  readonly #plan: CachePlan<Value>;
  readonly #surroundings: CacheSurroundings;
  readonly #local: LocalLayers<Value>;
  readonly #fence: FillFence<Value>;
  readonly #flights = new Map<string, Flight<Value>>();
  #gathered: Flight<Value>[] = [];
  #batchesAway = 0;
  /** Whether the last look into Redis found something missing: then the next probably does too. */
  #missedLast = false;
  readonly #reads = { redis: 0, source: 0, pushed: 0 };

  constructor(plan: CachePlan<Value>, surroundings: CacheSurroundings) {
    this.#plan = plan;
    this.#surroundings = surroundings;
    this.#local = new LocalLayers(plan, surroundings.context.clock, surroundings.disk);
    this.#fence = new FillFence(plan, surroundings.context);
  }

  get tag(): string {
    return this.#local.tag;
  }

  /** How many values each layer has answered since the start. `pushed` counts frames that were kept. */
  get reads(): Readonly<Record<"memory" | "disk" | "redis" | "source" | "pushed", number>> {
    return { ...this.#local.hits, ...this.#reads };
  }

  /** The value, or undefined when the source has none. Do not change it: it is shared with everyone else who asks. */
  get(id: string): Promise<Value | undefined> {
    const entry = this.#local.read(id);
    return entry === undefined ? this.#join(id) : Promise.resolve(entry.value);
  }

  /** The values of all ids that have one, in the order asked: one read of Redis and one of the source for all misses. */
  async getMany(ids: readonly string[]): Promise<Map<string, Value>> {
    const found = new Map<string, Value | undefined>();
    const flights: Promise<void>[] = [];
    for (const id of ids) {
      const entry = this.#local.read(id);
      found.set(id, entry?.value);
      if (entry === undefined) flights.push(this.#join(id).then((value) => void found.set(id, value)));
    }
    await Promise.all(flights);
    for (const [id, value] of found) if (value === undefined) found.delete(id);
    return found as Map<string, Value>;
  }

  /** What memory or disk holds right now, without asking anyone. */
  peek(id: string): Value | undefined {
    return this.#local.read(id)?.value;
  }

  /** Forgets ids everywhere; call it after the change is committed. When it returns, this process has forgotten too. */
  async purge(ids: string | readonly string[], minCheckedAt = this.#clock.now()): Promise<void> {
    for (const batch of batches(typeof ids === "string" ? [ids] : ids)) {
      const echo = this.#plan.channel && this.#surroundings.expectEcho();
      await this.#fence.purge(batch, minCheckedAt, echo);
      this.receive({ kind: "purge", ids: batch, minCheckedAt });
      // A fill that Redis did before the purge may still be on its way to us; behind it come our purge and our echo.
      await echo?.heard();
    }
  }

  /** Tells every process new values, read from the source at `checkedAt` or later. */
  async push(values: ReadonlyMap<string, Value>, checkedAt = this.#clock.now()): Promise<void> {
    for (const batch of batches([...values])) {
      const echo = this.#surroundings.expectEcho();
      try {
        await this.#fence.push(batch, checkedAt, echo);
      } catch (error) {
        // It may or may not have happened; forgetting is right either way.
        await this.purge(
          batch.map(([id]) => id),
          checkedAt,
        );
        throw error;
      }
      for (const [id, value] of batch) this.#receiveFill(id, value, checkedAt);
      await echo.heard();
    }
  }

  /** Applies a frame as it came; frames must come in the order that Redis published them. */
  receiveFrame(raw: Buffer): void {
    const own = this.#fence.recognise(raw);
    if (own) this.#receiveFill(own.id, own.value, own.checkedAt);
    else this.receive(this.#plan.channel!.frames.decode(raw));
  }

  /** Applies what a frame says. */
  receive(message: CacheMessage): void {
    if (message.kind === "fill")
      this.#receiveFill(message.id, this.#plan.codec.decode(message.encoded), message.checkedAt);
    else if (message.ids === "all") {
      this.#local.purgeAll(message.minCheckedAt);
      for (const flight of [...this.#flights.values()]) this.#disturb(flight);
    } else
      for (const id of message.ids) {
        this.#local.purge(id, message.minCheckedAt);
        const flight = this.#flights.get(id);
        if (flight) this.#disturb(flight);
      }
  }

  /** Drops everything held in memory and trusts no read under way: frames may have been missed. */
  evict(): void {
    this.#fence.forgetOwnFills();
    this.#local.evict();
    for (const flight of [...this.#flights.values()]) this.#disturb(flight);
  }

  get #clock() {
    return this.#surroundings.context.clock;
  }

  #join(id: string): Promise<Value | undefined> {
    const known = this.#flights.get(id);
    if (known) return known.landed;
    const flight = new Flight<Value>(id);
    this.#flights.set(id, flight);
    this.#gather(flight);
    return flight.landed;
  }

  /** The first lookup leaves with those of the same tick; while it is away, those of a whole turn of the loop gather. */
  #gather(flight: Flight<Value>): void {
    flight.mode = "gathered";
    this.#gathered.push(flight);
    if (this.#gathered.length > 1) return;
    const leave = () => {
      const flights = this.#gathered;
      this.#gathered = [];
      for (const batch of batches(flights)) void this.#depart(batch);
    };
    if (this.#batchesAway === 0) process.nextTick(leave);
    else setImmediate(leave);
  }

  async #depart(flights: readonly Flight<Value>[]): Promise<void> {
    for (const flight of flights) flight.begin();
    this.#batchesAway += 1;
    try {
      const wanted = flights.filter((flight) => !this.#landLocally(flight));
      if (wanted.length === 0) return;
      // After a miss the next is likely: asking for the locks at once saves a look into Redis, and tells what is stored.
      const missing = this.#plan.lock && this.#missedLast ? wanted : await this.#readRedis(wanted);
      if (missing.length === 0) return;
      if (this.#plan.lock) await this.#askToFill(missing);
      else await this.#readUnlocked(missing);
    } catch (error) {
      for (const flight of flights)
        if (flight.mode === "reading") {
          this.#strikeOff(flight);
          flight.fail(error);
        }
    } finally {
      this.#batchesAway -= 1;
    }
  }

  /** A frame may have brought the value since somebody last looked. */
  #landLocally(flight: Flight<Value>): boolean {
    const entry = this.#local.read(flight.id);
    if (entry) this.#land(flight, entry.value);
    return entry !== undefined;
  }

  /** Lands what Redis holds; answers the rest. */
  async #readRedis(flights: readonly Flight<Value>[]): Promise<readonly Flight<Value>[]> {
    if (!this.#plan.redis || flights.length === 0) return flights;
    const found = await this.#fence.read(idsOf(flights));
    const missing = flights.filter((flight, index) => {
      const raw = found[index];
      if (!raw) return true;
      try {
        const value = this.#plan.codec.decode(raw);
        this.#reads.redis += 1;
        // When the source was read is not known, so any purge and any fill is newer than this.
        this.#keepAndLand(flight, value, 0);
        return false;
      } catch (error) {
        this.#surroundings.noteMalformed(this.#plan.name, error);
        return true;
      }
    });
    this.#missedLast = missing.length > 0;
    return missing;
  }

  async #askToFill(flights: readonly Flight<Value>[]): Promise<void> {
    const { token, rights } = await this.#fence.take(idsOf(flights));
    const ours: Flight<Value>[] = [];
    const stored: Flight<Value>[] = [];
    const alone: Flight<Value>[] = [];
    for (const [index, flight] of flights.entries()) {
      const right = rights[index]!;
      if (right.kind === "ours") ours.push(flight);
      else if (right.kind === "stored") stored.push(flight);
      else if (this.#mayWait(flight)) this.#wait(flight, right.seconds);
      else alone.push(flight);
    }
    await Promise.all([
      ours.length > 0 && this.#fill(ours, token),
      stored.length > 0 && this.#readRedis(stored).then((rest) => this.#readUnlocked(rest)),
      alone.length > 0 && this.#readUnlocked(alone),
    ]);
  }

  #mayWait(flight: Flight<Value>): boolean {
    flight.patienceEnds ??= this.#clock.monotonic() + PATIENCE_SECONDS;
    return flight.disturbed <= MOST_ROUNDS && this.#clock.monotonic() < flight.patienceEnds;
  }

  /** Another process fills this id: its frame lands the flight; a purge or the lock's end makes it look again. */
  #wait(flight: Flight<Value>, lockSeconds: number): void {
    // The frame may have overtaken the answer that another fills it.
    if (this.#landLocally(flight)) return;
    const successor = this.#flights.get(flight.id);
    if (successor && successor !== flight) {
      // Struck while reading, and somebody has asked since: their flight sees everything this one would.
      flight.follow(successor);
      return;
    }
    this.#flights.set(flight.id, flight);
    if (flight.struck) {
      // The purge has ended the lock that we were told of, so nobody may be filling any more.
      flight.disturb();
      this.#gather(flight);
      return;
    }
    const patience = flight.patienceEnds! - this.#clock.monotonic();
    // One millisecond more, because the lock ends somewhere within the last one counted.
    void flight.wait(this.#clock, Math.min(lockSeconds + 0.001, patience)).then((outcome) => {
      if (outcome === "landed") return;
      if (outcome === "in vain") this.#reportLostFill(flight);
      this.#gather(flight);
    });
  }

  #reportLostFill(flight: Flight<Value>): void {
    const { name } = this.#plan;
    if (flight.reported) return;
    flight.reported = true;
    this.#surroundings.context.alerts.warning(
      `cache:fill_timeout:${name}`,
      `no fill of ${name} came within ${PATIENCE_SECONDS} s: its filler has died, or its source is slow`,
    );
  }

  /** We hold the locks: read the source, tell everyone, release. */
  async #fill(flights: readonly Flight<Value>[], token: string): Promise<void> {
    const toRead = this.#plan.redis ? flights : await this.#notYetFilled(flights, token);
    if (toRead.length === 0) return;
    const checkedAt = this.#clock.now();
    const found = await this.#readSource(toRead).catch(async (error) => {
      await this.#fence.release(idsOf(toRead), token);
      throw error;
    });
    const present = toRead.filter((flight) => found.has(flight.id));
    const absent = toRead.filter((flight) => !found.has(flight.id));
    const kept = await this.#fence.finish(idsOf(present), found, checkedAt, token);
    for (const [index, flight] of present.entries()) {
      const value = found.get(flight.id)!;
      if (kept[index]) this.#keepAndLand(flight, value, checkedAt);
      else this.#land(flight, flight.filled ? flight.filled.value : value);
    }
    for (const flight of absent) this.#land(flight, undefined);
    await this.#fence.finishAbsent(idsOf(absent), checkedAt, token);
  }

  /** The filler before us may have finished between our look and our lock; then its frame is already on its way. */
  async #notYetFilled(flights: readonly Flight<Value>[], token: string): Promise<readonly Flight<Value>[]> {
    await this.#surroundings.caughtUp();
    const filled = flights.filter((flight) => flight.filled);
    for (const flight of filled) this.#land(flight, flight.filled!.value);
    await this.#fence.release(idsOf(filled), token);
    return flights.filter((flight) => flight.mode === "reading");
  }

  /** The family has no lock; or it has, but its holder let us wait too long, and then nobody else is told. */
  async #readUnlocked(flights: readonly Flight<Value>[]): Promise<void> {
    if (flights.length === 0) return;
    const checkedAt = this.#clock.now();
    const found = await this.#readSource(flights);
    if (!this.#plan.lock) await this.#fence.store(found, checkedAt);
    for (const flight of flights) {
      const value = found.get(flight.id);
      if (value === undefined) this.#land(flight, undefined);
      else this.#keepAndLand(flight, value, checkedAt);
    }
  }

  async #readSource(flights: readonly Flight<Value>[]): Promise<ReadonlyMap<string, Value>> {
    const { absent } = this.#plan;
    const ids = idsOf(flights);
    this.#reads.source += ids.length;
    const found = await this.#plan.source(ids);
    return absent === undefined ? found : new Map(ids.map((id) => [id, found.get(id) ?? absent]));
  }

  #receiveFill(id: string, value: Value, checkedAt: number | undefined): void {
    if (checkedAt === undefined) this.#local.replace(id, value, this.#clock.now());
    else if (!this.#local.keepPushed(id, value, checkedAt)) return;
    this.#reads.pushed += 1;
    const flight = this.#flights.get(id);
    if (flight?.mode === "waiting") this.#land(flight, value);
    else if (flight?.mode === "reading") flight.filled = { value };
  }

  /** What this flight reads or waits for may be stale. */
  #disturb(flight: Flight<Value>): void {
    if (flight.mode === "waiting") flight.disturb();
    if (flight.mode !== "reading") return;
    flight.strike();
    this.#strikeOff(flight);
  }

  #keepAndLand(flight: Flight<Value>, value: Value, checkedAt: number): void {
    if (!flight.filled && !flight.struck) this.#local.keepRead(flight.id, value, checkedAt);
    this.#land(flight, flight.filled ? flight.filled.value : value);
  }

  #land(flight: Flight<Value>, value: Value | undefined): void {
    this.#strikeOff(flight);
    flight.land(value);
  }

  /** Later callers start a flight of their own. */
  #strikeOff(flight: Flight<Value>): void {
    if (this.#flights.get(flight.id) === flight) this.#flights.delete(flight.id);
  }
}

function idsOf(flights: readonly Flight<never>[] | readonly { readonly id: string }[]): string[] {
  return flights.map((flight) => flight.id);
}

function batches<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  if (items.length <= BATCH) return items.length === 0 ? [] : [items];
  const count = Math.ceil(items.length / BATCH);
  return Array.from({ length: count }, (_, at) => items.slice(at * BATCH, (at + 1) * BATCH));
}
