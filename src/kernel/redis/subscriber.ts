import type { Redis } from "ioredis";
import type { Clock } from "../clock.ts";
import type { RedisConnection } from "./connection.ts";

export type MessageHandler = (message: Buffer, channel: string) => void;

const RECONNECT_DELAYS = [2, 4, 8, 16, 32];
const FAILURES_UNTIL_UNREADY = 5;
const FAILURE_WINDOW = 60;

/**
 * The one subscriber connection of a process; every channel of every domain is multiplexed over it.
 *
 * Messages published while it is away are lost, which is in the nature of pub/sub; `onReconnect` listeners run before
 * any further message is handed out, so caches can drop what they may have missed. Five connection failures within a
 * minute make it unhealthy until it is back.
 */
export class Subscriber {
  readonly #client: Redis;
  readonly #clock: Clock;
  readonly #handlers = new Map<string, Set<MessageHandler>>();
  readonly #reconnectListeners = new Set<() => Promise<void> | void>();
  #failures: number[] = [];
  #connectedBefore = false;
  #connected = false;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#clock = clock;
    this.#client = redis.duplicate({
      retryStrategy: (times) => RECONNECT_DELAYS[Math.min(times, RECONNECT_DELAYS.length) - 1]! * 1000,
      maxRetriesPerRequest: null,
      autoResubscribe: true,
    });
    this.#client.on("error", () => this.#noteFailure());
    this.#client.on("close", () => {
      this.#connected = false;
    });
    this.#client.on("ready", () => void this.#onReady());
    this.#client.on("messageBuffer", (channel: Buffer, message: Buffer) => {
      const name = channel.toString("utf8");
      for (const handler of this.#handlers.get(name) ?? []) handler(message, name);
    });
  }

  get healthy(): boolean {
    if (this.#connected) return true;
    const since = this.#clock.now() - FAILURE_WINDOW;
    return this.#failures.filter((at) => at > since).length < FAILURES_UNTIL_UNREADY;
  }

  /** Hands every message of the channel to `handler`; resolves when the subscription stands. */
  async subscribe(channel: string, handler: MessageHandler): Promise<() => Promise<void>> {
    const handlers = this.#handlers.get(channel) ?? new Set();
    this.#handlers.set(channel, handlers);
    handlers.add(handler);
    if (handlers.size === 1) await this.#client.subscribe(channel);
    return async () => {
      handlers.delete(handler);
      if (handlers.size > 0 || this.#handlers.get(channel) !== handlers) return;
      this.#handlers.delete(channel);
      await this.#client.unsubscribe(channel).catch(() => {});
    };
  }

  /** Runs at every reconnect, before messages flow again. */
  onReconnect(listener: () => Promise<void> | void): () => void {
    this.#reconnectListeners.add(listener);
    return () => this.#reconnectListeners.delete(listener);
  }

  close(): void {
    this.#client.disconnect();
  }

  #noteFailure(): void {
    const now = this.#clock.now();
    this.#failures = [...this.#failures.filter((at) => at > now - FAILURE_WINDOW), now];
  }

  async #onReady(): Promise<void> {
    this.#connected = true;
    this.#failures = [];
    if (this.#connectedBefore) for (const listener of this.#reconnectListeners) await listener();
    this.#connectedBefore = true;
  }
}
