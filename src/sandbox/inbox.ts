import type { Clock } from "../kernel/clock.ts";
import type { ReadMail } from "./mail-reader.ts";
import { numberOf, type Shelf } from "./shelf.ts";

export const CHANNELS = ["push", "sms", "email"] as const;
export type Channel = (typeof CHANNELS)[number];

/** A step in the life of a message. Steps may lie ahead: a message's status is the last one that is not. */
export interface Moment {
  readonly status: string;
  readonly at: number;
  /** A provider's error name or code. */
  readonly error?: string;
}

/** A webhook call about a message, and what was answered; null = nothing. */
export interface WebhookCall {
  readonly kind: string;
  readonly url: string;
  readonly at: number;
  readonly answered: number | null;
}

export interface NewMessage {
  readonly channel: Channel;
  readonly direction: "out" | "in";
  readonly provider: "expo" | "twilio" | "ses" | "smtp";
  /** The ticket, sid or message id under which the provider knows it. */
  readonly provider_id: string;
  readonly to: string;
  readonly from: string | null;
  readonly subject: string | null;
  readonly text: string;
  readonly moments: readonly Moment[];
  /** What else the provider was told, as it was told. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly raw?: Buffer;
  readonly mail?: ReadMail;
}

export interface SandboxMessage extends Omit<NewMessage, "moments"> {
  readonly id: string;
  readonly at: number;
  moments: Moment[];
  readonly webhooks: WebhookCall[];
}

export interface MessageFilter {
  readonly channel?: Channel;
  /** A part of the receiver's address, in any case. */
  readonly to?: string;
  readonly subject?: string;
  /** Unix seconds; only later ones. */
  readonly since?: number;
  readonly limit?: number;
}

const LARGEST_STORE = 64 * 1024 * 1024;

/**
 * Everything that the simulators accepted, newest last: the newest thousand, and at most 64 MiB of raw mail. A message in
 * the inbox is one that a real provider would have sent. With a shelf it outlives the process.
 */
export class Inbox {
  readonly #clock: Clock;
  readonly #keep: number;
  readonly #messages = new Map<string, SandboxMessage>();
  readonly #watchers = new Set<(message: SandboxMessage) => void>();
  readonly #shelf: Shelf | undefined;
  #bytes = 0;
  #made = 0;

  constructor(clock: Clock, keep = 1000, shelf?: Shelf) {
    this.#clock = clock;
    this.#keep = keep;
    this.#shelf = shelf;
    for (const message of shelf?.found ?? []) {
      this.#messages.set(message.id, message);
      this.#bytes += message.raw?.length ?? 0;
      this.#made = numberOf(message);
    }
    this.#makeRoom();
  }

  get size(): number {
    return this.#messages.size;
  }

  add(message: NewMessage): SandboxMessage {
    const kept: SandboxMessage = {
      ...message,
      moments: [...message.moments],
      id: `${message.channel}-${++this.#made}`,
      at: this.#clock.now(),
      webhooks: [],
    };
    this.#messages.set(kept.id, kept);
    this.#bytes += kept.raw?.length ?? 0;
    this.#shelf?.put(kept);
    this.#makeRoom();
    for (const watcher of this.#watchers) watcher(kept);
    return kept;
  }

  /** Calls for every message that is taken from now on. */
  watch(watcher: (message: SandboxMessage) => void): void {
    this.#watchers.add(watcher);
  }

  get(id: string): SandboxMessage | undefined {
    return this.#messages.get(id);
  }

  /** Newest first. */
  list(filter: MessageFilter = {}): SandboxMessage[] {
    return this.all()
      .reverse()
      .filter((message) => fits(message, filter))
      .slice(0, filter.limit ?? this.#keep);
  }

  /** Oldest first, which is the order of sending. */
  all(): SandboxMessage[] {
    return [...this.#messages.values()];
  }

  remove(id: string): boolean {
    const message = this.#messages.get(id);
    if (!message) return false;
    this.#bytes -= message.raw?.length ?? 0;
    this.#shelf?.remove(message);
    return this.#messages.delete(id);
  }

  clear(): void {
    this.#messages.clear();
    this.#shelf?.clear();
    this.#bytes = 0;
  }

  /** Notes a webhook call about a message. */
  heard(message: SandboxMessage, call: WebhookCall): void {
    message.webhooks.push(call);
    this.#changed(message);
  }

  /** The newest message that fits, as soon as there is one; undefined when the time is up. */
  async wait(filter: MessageFilter, seconds: number): Promise<SandboxMessage | undefined> {
    const done = new AbortController();
    let found = this.list(filter)[0];
    if (found || seconds <= 0) return found;
    const watcher = () => {
      found = this.list(filter)[0];
      if (found) done.abort();
    };
    this.#watchers.add(watcher);
    await this.#clock.sleep(seconds, done.signal);
    this.#watchers.delete(watcher);
    return found;
  }

  statusOf(message: SandboxMessage): Moment {
    return this.historyOf(message).at(-1)!;
  }

  /** The steps that have been reached; the first is always among them. */
  historyOf(message: SandboxMessage): Moment[] {
    const now = this.#clock.now();
    return message.moments.filter(({ at }, index) => index === 0 || at <= now);
  }

  /** Forgets the steps ahead and goes on with these instead. */
  redirect(message: SandboxMessage, moments: readonly Moment[]): void {
    message.moments = [...this.historyOf(message), ...moments];
    this.#changed(message);
  }

  /** One that was taken out meanwhile stays out. */
  #changed(message: SandboxMessage): void {
    if (this.#messages.get(message.id) === message) this.#shelf?.put(message);
  }

  #makeRoom(): void {
    for (const oldest of this.#messages.keys()) {
      if (this.#messages.size <= this.#keep && (this.#bytes <= LARGEST_STORE || this.#messages.size === 1)) break;
      this.remove(oldest);
    }
  }
}

function fits(message: SandboxMessage, { channel, to, subject, since }: MessageFilter): boolean {
  const within = (part: string | undefined, whole: string | null) =>
    part === undefined || (whole ?? "").toLowerCase().includes(part.toLowerCase());
  return (
    (channel === undefined || message.channel === channel) &&
    within(to, message.to) &&
    within(subject, message.subject) &&
    (since === undefined || message.at > since)
  );
}
