import { z } from "zod";
import type { KernelContext } from "../../kernel/context.ts";
import type { LiveChannelKind, LiveGrant } from "./kind.ts";
import { Listening } from "./listening.ts";
import { Room } from "./room.ts";
import { closeCodes, type LiveSocket, textOf } from "./socket.ts";

export type LiveContext = Pick<KernelContext, "clock" | "subscriber" | "alerts" | "log">;

export interface LiveLimits {
  /** Seconds between pings. */
  readonly pingEvery: number;
  /** Seconds without any sign of life after which a socket is closed. */
  readonly silence: number;
  readonly unsentBytes: number;
  readonly channels: number;
  /** Longest message that a client may send, in bytes. */
  readonly messageBytes: number;
  /** Seconds that sockets have to go at shutdown. */
  readonly drain: number;
}

const defaultLimits: LiveLimits = {
  pingEvery: 30,
  silence: 60,
  unsentBytes: 1024 * 1024,
  channels: 50,
  messageBytes: 64 * 1024,
  drain: 5,
};
const SWEEP_SECONDS = 1;
const WARNING_SECONDS = 3600;

const Subscribe = z.object({
  type: z.literal("subscribe"),
  channel: z.string().min(1).max(300),
  jwt: z.string().max(16_384),
  since: z.number().int().min(0).optional(),
});
type Subscribe = z.infer<typeof Subscribe>;

/** One client's socket and what it listens to. */
class Connection {
  readonly socket: LiveSocket;
  readonly listenings = new Map<string, Listening>();
  /** Channels asked for whose credentials are still being checked. */
  readonly asking: string[] = [];
  heardAt: number;
  pingedAt: number;
  open = true;

  constructor(socket: LiveSocket, now: number) {
    this.socket = socket;
    this.heardAt = now;
    this.pingedAt = now;
  }

  get channels(): number {
    return new Set([...this.listenings.keys(), ...this.asking]).size;
  }

  follows(channel: string): boolean {
    return this.listenings.has(channel) || this.asking.includes(channel);
  }
}

/**
 * Brings Redis channels to websockets. It holds no truth: state is committed before it is published, so a client that
 * lost messages reads it elsewhere, and a gateway that dies loses nothing but its sockets.
 *
 *   socket    accepted --> listening to 0..50 channels --> closed (by the client, or with one of `closeCodes`)
 *   channel   first local listener subscribes it, the last one to leave unsubscribes it
 *
 * One sweep a second looks after pings, silence and credentials of all sockets; there is no timer per socket.
 */
export class LiveGateway {
  readonly #context: LiveContext;
  readonly #limits: LiveLimits;
  readonly #kinds: LiveChannelKind[] = [];
  readonly #connections = new Set<Connection>();
  readonly #rooms = new Map<string, Room>();
  readonly #warnedAt = new Map<string, number>();
  readonly #stopSweeping: () => void;
  readonly #stopListening: () => void;
  #closing = false;

  constructor(
    context: LiveContext,
    options: { kinds?: readonly LiveChannelKind[]; limits?: Partial<LiveLimits> } = {},
  ) {
    this.#context = context;
    this.#limits = { ...defaultLimits, ...options.limits };
    for (const kind of options.kinds ?? []) this.register(kind);
    this.#stopSweeping = context.clock.every(SWEEP_SECONDS, () => this.#sweep());
    this.#stopListening = context.subscriber.onReconnect(() => this.#catchUp());
  }

  /** How many sockets and Redis channels are open in this process. */
  get open(): { readonly sockets: number; readonly channels: number } {
    return { sockets: this.#connections.size, channels: this.#rooms.size };
  }

  register(kind: LiveChannelKind): void {
    if (this.#kinds.some(({ prefix }) => prefix.startsWith(kind.prefix) || kind.prefix.startsWith(prefix)))
      throw new TypeError(`two kinds of live channels start with ${kind.prefix}`);
    this.#kinds.push(kind);
  }

  /** Takes over a socket whose upgrade is done. */
  accept(socket: LiveSocket): void {
    if (this.#closing) {
      socket.close(closeCodes.shutdown, "the server is going away");
      return;
    }
    const connection = new Connection(socket, this.#context.clock.monotonic());
    this.#connections.add(connection);
    socket.on("message", (data, isBinary) => {
      connection.heardAt = this.#context.clock.monotonic();
      const text = textOf(data);
      if (Buffer.byteLength(text) > this.#limits.messageBytes) this.#close(connection, "tooBig", "message too long");
      else if (isBinary) this.#refuse(connection, "bad_message", "messages are JSON text");
      else void this.#receive(connection, text);
    });
    socket.on("pong", () => {
      connection.heardAt = this.#context.clock.monotonic();
    });
    socket.on("close", () => this.#forget(connection));
    // An error is always followed by a close; without a listener it would end the process.
    socket.on("error", () => {});
  }

  /** Sends everyone away and waits until they are gone, or ends them. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#stopSweeping();
    this.#stopListening();
    const leaving = [...this.#connections];
    const gone = Promise.all(
      leaving.map(({ socket }) => new Promise<void>((done) => socket.on("close", () => done()))),
    );
    for (const connection of leaving) this.#close(connection, "shutdown", "the server is going away");
    const drained = new AbortController();
    await Promise.race([gone, this.#context.clock.sleep(this.#limits.drain, drained.signal)]);
    drained.abort();
    for (const { socket } of leaving) socket.terminate();
  }

  async #receive(connection: Connection, text: string): Promise<void> {
    const message = parse(text);
    if (!message) {
      this.#refuse(connection, "bad_message", 'expected {"type":"subscribe","channel","jwt","since"?}');
      return;
    }
    const kind = this.#kinds.find(({ prefix }) => message.channel.startsWith(prefix));
    if (!kind) return this.#refuse(connection, "unknown_channel", "there is no such channel", message.channel);
    if (!connection.follows(message.channel) && connection.channels >= this.#limits.channels)
      return this.#close(connection, "tooManyChannels", `at most ${this.#limits.channels} channels a socket`);
    try {
      const grant = await this.#authorize(connection, kind, message);
      if (grant && connection.open) await this.#listen(connection, kind, message, grant);
    } catch (error) {
      this.#context.log.warn({ err: error, channel: kind.prefix }, "a live channel could not be opened");
      this.#refuse(connection, "unavailable", "the channel cannot be opened right now", message.channel);
    }
  }

  async #authorize(connection: Connection, kind: LiveChannelKind, message: Subscribe): Promise<LiveGrant | undefined> {
    const { channel, jwt } = message;
    connection.asking.push(channel);
    try {
      const answer = await kind.authorize(jwt, channel.slice(kind.prefix.length));
      if (answer.ok && answer.expiresAt > this.#context.clock.now()) return answer;
      if (answer.ok) this.#refuse(connection, "expired", "the credential has expired", channel);
      else this.#refuse(connection, answer.code, answer.message, channel);
      return undefined;
    } finally {
      connection.asking.splice(connection.asking.indexOf(channel), 1);
    }
  }

  async #listen(connection: Connection, kind: LiveChannelKind, message: Subscribe, grant: LiveGrant): Promise<void> {
    const { channel, since } = message;
    const { expiresAt } = grant;
    const listening = new Listening({
      channel,
      room: this.#room(kind, channel),
      expiresAt,
      since,
      send: (text) => {
        if (expiresAt > this.#context.clock.now()) this.#send(connection, text);
        else this.#close(connection, "expired", "a credential has expired");
      },
      onEnd: () => this.#end(connection, listening),
    });
    // Asking again replaces what was: a fresh credential, or a replay from another place.
    const before = connection.listenings.get(channel);
    connection.listenings.set(channel, listening);
    const started = listening.start();
    before?.leave();
    try {
      await started;
    } catch (error) {
      this.#leave(connection, listening);
      throw error;
    }
  }

  #room(kind: LiveChannelKind, channel: string): Room {
    const known = this.#rooms.get(channel);
    if (known) return known;
    const name = channel.slice(kind.prefix.length);
    const room = new Room(kind, name, this.#context.subscriber, (_room, error) => this.#noteMalformed(kind, error));
    this.#rooms.set(channel, room);
    return room;
  }

  #leave(connection: Connection, listening: Listening): void {
    listening.leave();
    if (connection.listenings.get(listening.channel) === listening) connection.listenings.delete(listening.channel);
    const { room, channel } = listening;
    if (room.size > 0) return;
    void room.closeIfEmpty(() => {
      if (this.#rooms.get(channel) === room) this.#rooms.delete(channel);
    });
  }

  #end(connection: Connection, listening: Listening): void {
    this.#leave(connection, listening);
    if (connection.channels === 0) this.#close(connection, "ended", "nothing more will come");
  }

  #send(connection: Connection, text: string): void {
    if (!connection.open) return;
    connection.socket.send(text);
    if (connection.socket.bufferedAmount > this.#limits.unsentBytes)
      this.#close(connection, "slow", "too much is waiting to be sent");
  }

  #refuse(connection: Connection, code: string, message: string, channel?: string): void {
    this.#send(connection, JSON.stringify({ type: "error", code, message, channel }));
  }

  #close(connection: Connection, why: keyof typeof closeCodes, reason: string): void {
    if (!connection.open) return;
    this.#forget(connection);
    connection.socket.close(closeCodes[why], reason);
  }

  #forget(connection: Connection): void {
    connection.open = false;
    this.#connections.delete(connection);
    for (const listening of [...connection.listenings.values()]) this.#leave(connection, listening);
  }

  #sweep(): void {
    const { clock } = this.#context;
    const [now, ticks] = [clock.now(), clock.monotonic()];
    for (const connection of [...this.#connections]) {
      if (ticks - connection.heardAt >= this.#limits.silence) {
        this.#close(connection, "silent", "no sign of life");
      } else if ([...connection.listenings.values()].some(({ expiresAt }) => expiresAt <= now))
        this.#close(connection, "expired", "a credential has expired");
      else if (ticks - connection.pingedAt >= this.#limits.pingEvery) {
        connection.pingedAt = ticks;
        connection.socket.ping();
      }
    }
  }

  /** The subscriber was away and messages were lost; every channel that keeps some sends what is missing. */
  async #catchUp(): Promise<void> {
    const listenings = [...this.#connections].flatMap((connection) => [...connection.listenings.values()]);
    await Promise.allSettled(listenings.map((listening) => listening.catchUp()));
  }

  #noteMalformed(kind: LiveChannelKind, error: unknown): void {
    const now = this.#context.clock.now();
    if (now - (this.#warnedAt.get(kind.prefix) ?? Number.NEGATIVE_INFINITY) < WARNING_SECONDS) return;
    this.#warnedAt.set(kind.prefix, now);
    const reason = error instanceof Error ? error.message : String(error);
    this.#context.alerts.warning(`live:malformed:${kind.prefix}`, `dropped a message that is not JSON: ${reason}`);
  }
}

function parse(text: string): Subscribe | undefined {
  try {
    return Subscribe.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
