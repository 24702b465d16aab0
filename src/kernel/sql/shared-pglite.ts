import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Sql } from "./connection.ts";

/**
 * The embedded engine, lent to other processes of this machine.
 *
 * Only one process may open the engine's folder. That process listens on a unix socket and speaks the Postgres protocol
 * there, so the commands beside it (and psql) are ordinary clients. What is authoritative is the engine in the owner;
 * a client holds nothing.
 *
 * Life of a client connection: greeted -> idle -> holding -> idle -> ... -> closed.
 * - idle to holding: a complete cycle of messages (up to Sync, Flush or a simple Query) has arrived, and the engine's
 *   single session is free. From here on nobody else, the owner included, gets a statement in between.
 * - holding to idle: the engine says that no transaction is open.
 * - holding to closed, because the client died: its transaction is rolled back, then the session is free again.
 * - the owner dies: clients see their connection closed; what was not committed is gone, as with any server.
 *
 * All clients are the same session, so settings made with SET and named prepared statements are seen by all. Carillon
 * uses neither.
 */
export interface SharedPglite {
  readonly socketPath: string;
  close(): Promise<void>;
}

/** The port is only part of the socket's name, which clients of Postgres compose themselves. */
const SOCKET_NAME = ".s.PGSQL.5432";
const PROTOCOL_3 = 196_608;
const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;
/** Messages after which the client waits for an answer. */
const ENDS_CYCLE = new Set(["Q", "S", "H"]);

export function pgliteSocketPath(directory: string): string {
  return join(directory, SOCKET_NAME);
}

/** The address under which `openSql` and other clients reach an engine that is shared in this folder. */
export function sharedPgliteUrl(directory: string): string {
  return `postgres://postgres@localhost/postgres?host=${encodeURIComponent(directory)}`;
}

export async function sharePglite(sql: Sql, directory: string): Promise<SharedPglite> {
  const engine = sql.embedded;
  if (!engine) throw new TypeError("only the embedded engine can be shared; a server shares itself");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const socketPath = pgliteSocketPath(directory);
  // Whoever may call this owns the engine's folder, so a socket that is already there belongs to a dead owner.
  rmSync(socketPath, { force: true });
  const clients = new Set<Client>();
  const server = createServer((socket) => {
    const client = new Client(socket, sql, (message) => engine.execProtocolRaw(message));
    clients.add(client);
    socket.once("close", () => clients.delete(client));
  });
  await listen(server, socketPath);
  chmodSync(socketPath, 0o600);
  return {
    socketPath,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all([...clients].map((client) => client.end()));
      await closed;
    },
  };
}

class Client {
  readonly #socket: Socket;
  readonly #sql: Sql;
  readonly #execute: (message: Uint8Array) => Promise<Uint8Array>;
  #greeted = false;
  #received: Buffer = Buffer.alloc(0);
  /** Complete messages of a cycle that has not ended yet. */
  #cycle: Buffer[] = [];
  /** Ended cycles that the engine has not seen yet. */
  #waiting: Buffer[] = [];
  #work: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: Socket, sql: Sql, execute: (message: Uint8Array) => Promise<Uint8Array>) {
    this.#socket = socket;
    this.#sql = sql;
    this.#execute = execute;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#wake?.());
  }

  async end(): Promise<void> {
    this.#socket.destroy();
    this.#wake?.();
    await this.#work;
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    for (;;) {
      const message = this.#greeted ? this.#nextMessage() : this.#nextGreeting();
      if (!message) break;
      if (!this.#greeted) this.#greet(message);
      else this.#accept(message);
    }
  }

  /** The first messages have no type, only a length and a code. */
  #nextGreeting(): Buffer | undefined {
    return this.#cut(this.#received.length >= 8 ? this.#received.readInt32BE(0) : Number.POSITIVE_INFINITY);
  }

  #nextMessage(): Buffer | undefined {
    return this.#cut(this.#received.length >= 5 ? 1 + this.#received.readInt32BE(1) : Number.POSITIVE_INFINITY);
  }

  #cut(length: number): Buffer | undefined {
    if (this.#received.length < length) return undefined;
    const message = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return message;
  }

  #greet(message: Buffer): void {
    const code = message.readInt32BE(4);
    if (code === SSL_REQUEST || code === GSS_REQUEST) {
      this.#socket.write("N");
      return;
    }
    if (code !== PROTOCOL_3) {
      // Cancelling is not possible with one session; anything else is not a client of Postgres.
      this.#socket.destroy();
      return;
    }
    this.#greeted = true;
    this.#socket.write(GREETING);
  }

  #accept(message: Buffer): void {
    const type = String.fromCharCode(message[0]!);
    if (type === "X") {
      this.#socket.end();
      return;
    }
    this.#cycle.push(message);
    if (!ENDS_CYCLE.has(type)) return;
    this.#waiting.push(Buffer.concat(this.#cycle));
    this.#cycle = [];
    this.#wake?.();
    this.#start();
  }

  #start(): void {
    this.#work ??= this.#hold().finally(() => {
      this.#work = undefined;
      // A cycle that arrived while the session was being given back found nobody to run it.
      if (this.#waiting.length > 0 && !this.#socket.destroyed) this.#start();
    });
  }

  /** Holds the engine's session from the first cycle until no transaction is open and nothing waits. */
  async #hold(): Promise<void> {
    await this.#sql
      .tables<never>()
      .connection()
      .execute(async () => {
        let open = false;
        while (!this.#socket.destroyed && (open || this.#waiting.length > 0)) {
          const cycle = this.#waiting.shift();
          if (!cycle) {
            await new Promise<void>((resolve) => {
              this.#wake = resolve;
            });
            continue;
          }
          const answer = await this.#execute(cycle);
          open = transactionOpen(answer, open);
          this.#socket.write(answer);
        }
        if (open) await this.#execute(ROLLBACK);
      })
      .catch(() => void this.#socket.destroy());
  }
}

/** The last ReadyForQuery says how the session stands: idle, in a transaction, or in a failed one. */
function transactionOpen(answer: Uint8Array, before: boolean): boolean {
  const view = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength);
  let open = before;
  for (let at = 0; at + 5 <= view.length; at += 1 + view.readInt32BE(at + 1))
    if (view[at] === READY_FOR_QUERY) open = view[at + 5] !== IDLE;
  return open;
}

const READY_FOR_QUERY = "Z".charCodeAt(0);
const IDLE = "I".charCodeAt(0);

function frame(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, 0, "latin1");
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

const ROLLBACK = frame("Q", Buffer.from("rollback\0"));

/** Authenticated by the file's permissions; then what a client must know of the server; then ready. */
const GREETING = Buffer.concat([
  frame("R", Buffer.alloc(4)),
  ...Object.entries({
    server_version: "17.0 (embedded)",
    server_encoding: "UTF8",
    client_encoding: "UTF8",
    DateStyle: "ISO, MDY",
    integer_datetimes: "on",
    standard_conforming_strings: "on",
    TimeZone: "UTC",
  }).map(([name, value]) => frame("S", Buffer.from(`${name}\0${value}\0`))),
  frame("K", Buffer.alloc(8)),
  frame("Z", Buffer.from("I")),
]);

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
