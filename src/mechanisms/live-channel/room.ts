import type { Subscriber } from "../../kernel/redis/index.ts";
import { type LiveChannelKind, sequenceOf } from "./kind.ts";

/** One message as all listeners of a channel get it: encoded once, however many they are. */
export type RoomMessage =
  | { readonly kind: "event"; readonly json: string; readonly seq: number | undefined }
  | { readonly kind: "end" };

/**
 * One Redis channel as long as somebody in this process listens to it.
 *
 *   opening --SUBSCRIBE answered--> open --last listener left--> closed
 *
 * Redis decides the order; a room hands messages out as they come. Nothing survives a crash and nothing has to: what a
 * client missed it reads again over HTTP or as a replay.
 */
export class Room {
  readonly kind: LiveChannelKind;
  readonly name: string;
  readonly #listeners = new Set<(message: RoomMessage) => void>();
  readonly #onMalformed: (room: Room, error: unknown) => void;
  readonly #opened: Promise<() => Promise<void>>;

  constructor(
    kind: LiveChannelKind,
    name: string,
    subscriber: Subscriber,
    onMalformed: (room: Room, error: unknown) => void,
  ) {
    this.kind = kind;
    this.name = name;
    this.#onMalformed = onMalformed;
    this.#opened = subscriber.subscribe(kind.channelKey(name), (raw) => this.#receive(raw.toString("utf8")));
    // Whoever enters awaits it; without anybody left, a failure is nobody's.
    this.#opened.catch(() => {});
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Resolves once messages are certain to arrive. */
  async enter(listener: (message: RoomMessage) => void): Promise<void> {
    this.#listeners.add(listener);
    await this.#opened;
  }

  leave(listener: (message: RoomMessage) => void): void {
    this.#listeners.delete(listener);
  }

  /** Unsubscribes unless somebody has come in meanwhile; `forget` is called before the next may open it anew. */
  async closeIfEmpty(forget: () => void): Promise<void> {
    const unsubscribe = await this.#opened.catch(() => undefined);
    if (this.size > 0) return;
    forget();
    await unsubscribe?.();
  }

  #receive(text: string): void {
    const message = this.#read(text);
    if (message) for (const listener of [...this.#listeners]) listener(message);
  }

  #read(text: string): RoomMessage | undefined {
    if (this.kind.endsWith?.(text)) return { kind: "end" };
    try {
      return { kind: "event", json: text, seq: sequenceOf(this.kind, JSON.parse(text)) };
    } catch (error) {
      this.#onMalformed(this, error);
      return undefined;
    }
  }
}
