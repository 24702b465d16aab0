import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { Subscriber } from "../../kernel/redis/index.ts";
import { LayeredCache } from "./cache.ts";
import { DiskLayer } from "./disk.ts";
import type { Echo } from "./fence.ts";
import { keys } from "./keys.ts";
import { type CachePlan, COLLAB } from "./plan.ts";

const WARNING_SECONDS = 3600;
const CATCH_UP_PATIENCE = 1;

export type CacheContext = Pick<
  KernelContext,
  "clock" | "redis" | "cacheRedis" | "subscriber" | "alerts" | "metrics" | "log"
>;

/**
 * All layered caches of one process: they share its disk folder and its subscriber.
 *
 * Redis and the source are authoritative; what this process holds is only as good as the frames it has received. So
 * entries tagged `collab` are dropped at the start, when a disk may hold what was purged while the process was away, and
 * after every reconnect of the subscriber: once at once, and once more when the subscriptions stand again, because a
 * purge between the two would have been missed.
 *
 * Values, locks and frames of a family go through one server, so that a script can do all three: where caches live on a
 * server of their own, frames travel there too and this object keeps a subscriber to it.
 */
export class LayeredCaches {
  readonly context: CacheContext;
  readonly disk: DiskLayer | undefined;
  readonly #subscriber: Subscriber;
  readonly #ownSubscriber: boolean;
  readonly #caches = new Set<LayeredCache<never>>();
  readonly #warnedAt = new Map<string, number>();
  readonly #stopListening: () => void;
  readonly #echoChannel = keys.caughtUp({ process: randomToken() });
  readonly #echoes = new Map<string, () => void>();
  #listening: Promise<void> | undefined;
  #lastEcho = 0;
  #patient = false;
  readonly #closing = new AbortController();
  readonly #unsubscribe: (() => Promise<void>)[] = [];

  constructor(context: CacheContext, options: { directory?: string } = {}) {
    this.context = context;
    this.#ownSubscriber = context.cacheRedis !== context.redis;
    this.#subscriber = this.#ownSubscriber ? new Subscriber(context.cacheRedis, context.clock) : context.subscriber;
    this.disk = options.directory === undefined ? undefined : new DiskLayer(options.directory, context.clock);
    this.disk?.evict(COLLAB);
    this.#stopListening = this.#subscriber.onReconnect(async () => {
      this.evictCollaborative();
      await this.caughtUp();
      this.evictCollaborative();
    });
  }

  /** Opens one family's cache; it serves once its subscription stands. */
  async open<Value>(plan: CachePlan<Value>): Promise<LayeredCache<Value>> {
    const cache = new LayeredCache(plan, this);
    this.#caches.add(cache as unknown as LayeredCache<never>);
    const { channel } = plan;
    if (!channel) return cache;
    await this.#listenToOurselves();
    const unsubscribe = await this.#subscriber.subscribe(channel.name, (frame) => {
      try {
        cache.receiveFrame(frame);
      } catch (error) {
        this.noteMalformed(channel.name, error);
      }
    });
    this.#unsubscribe.push(unsubscribe);
    return cache;
  }

  /** Drops everything local whose truth depends on frames that may have been missed. */
  evictCollaborative(): void {
    this.disk?.evict(COLLAB);
    for (const cache of this.#caches) if (cache.tag === COLLAB) cache.evict();
  }

  /** Something to say to ourselves: it comes back behind every frame that was published before it. */
  expectEcho(): Echo {
    const message = String(++this.#lastEcho);
    const back = new Promise<void>((resolve) => this.#echoes.set(message, resolve));
    return { channel: this.#echoChannel, message, heard: () => this.#heard(message, back) };
  }

  async #heard(message: string, back: Promise<void>): Promise<void> {
    if (!this.#echoes.has(message)) return;
    if (!this.#patient) void this.#losePatience();
    await back;
  }

  /** A subscriber that is away is not waited for; its reconnect evicts. One timer serves all who wait. */
  async #losePatience(): Promise<void> {
    this.#patient = true;
    while (this.#echoes.size > 0) {
      const asked = this.#lastEcho;
      await this.context.clock.sleep(CATCH_UP_PATIENCE, this.#closing.signal);
      for (const [message, resolve] of [...this.#echoes])
        if (Number(message) <= asked || this.#closing.signal.aborted) {
          this.#echoes.delete(message);
          resolve();
        }
    }
    this.#patient = false;
  }

  /** Resolves when every frame that was published before this call has been handled here. */
  async caughtUp(): Promise<void> {
    await this.#listenToOurselves();
    const echo = this.expectEcho();
    await this.context.cacheRedis.commands.publish(echo.channel, echo.message);
    await echo.heard();
  }

  async #listenToOurselves(): Promise<void> {
    this.#listening ??= this.#subscriber
      .subscribe(this.#echoChannel, (raw) => {
        const message = raw.toString("latin1");
        this.#echoes.get(message)?.();
        this.#echoes.delete(message);
      })
      .then((unsubscribe) => void this.#unsubscribe.push(unsubscribe));
    await this.#listening;
  }

  /** Counts a frame or value that could not be read, and says so once an hour and place. */
  noteMalformed(place: string, error: unknown): void {
    const { alerts, clock, metrics } = this.context;
    metrics
      .counter("carillon_frames_dropped_total", "Frames and cached values that could not be decoded", ["channel"])
      .inc({ channel: place });
    const now = clock.now();
    if (now - (this.#warnedAt.get(place) ?? Number.NEGATIVE_INFINITY) < WARNING_SECONDS) return;
    this.#warnedAt.set(place, now);
    alerts.warning(
      `cache:malformed:${place}`,
      `dropped what ${place} sent: ${error instanceof Error ? error.message : error}`,
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#stopListening();
    if (this.#ownSubscriber) this.#subscriber.close();
    else await Promise.all(this.#unsubscribe.map((unsubscribe) => unsubscribe()));
    await this.disk?.close();
  }
}
