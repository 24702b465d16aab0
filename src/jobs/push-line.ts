import { Command } from "ioredis";
import type { RedisConnection } from "../kernel/redis/index.ts";

/** One command carries at most this much, so that a bulk enqueue never holds up the server for long. */
const PUSH_ENTRIES = 1000;
const PUSH_BYTES = 4 * 1024 * 1024;

/**
 * Appends to one list. A push that finds the line idle goes out at once; pushes that come while it is under way form the
 * next command together. So a single enqueue waits for nothing, and a thousand concurrent ones are one round trip.
 */
export class PushLine {
  readonly #redis: RedisConnection;
  readonly #key: string;
  #waiting: string[] = [];
  #arrival: Promise<void> | undefined;
  #underWay = false;

  constructor(redis: RedisConnection, key: string) {
    this.#redis = redis;
    this.#key = redis.topology.key(key);
  }

  push(entry: string): Promise<void> {
    this.#waiting.push(entry);
    if (!this.#underWay) return this.#send();
    this.#arrival ??= this.#afterPresent();
    return this.#arrival;
  }

  async pushMany(entries: readonly string[]): Promise<void> {
    await Promise.all(inChunks(entries).map((chunk) => this.#append(chunk)));
  }

  #present: Promise<void> = Promise.resolve();

  async #afterPresent(): Promise<void> {
    // How the commands before it ended is their callers' news, not ours.
    await this.#present.catch(() => {});
    this.#arrival = undefined;
    await this.#send();
  }

  #send(): Promise<void> {
    const entries = this.#waiting;
    this.#waiting = [];
    this.#underWay = true;
    this.#present = this.pushMany(entries).finally(() => {
      this.#underWay = this.#arrival !== undefined;
    });
    return this.#present;
  }

  #append(entries: readonly string[]): Promise<unknown> {
    return this.#redis.commands.sendCommand(new Command("rpush", [this.#key, ...entries])) as Promise<unknown>;
  }
}

export function inChunks(entries: readonly string[]): (readonly string[])[] {
  if (entries.length === 1) return [entries];
  const chunks: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    if (bytes + entry.length > PUSH_BYTES || chunks.at(-1)!.length >= PUSH_ENTRIES) {
      chunks.push([]);
      bytes = 0;
    }
    chunks.at(-1)!.push(entry);
    bytes += entry.length;
  }
  return chunks;
}
