/** What the gateway needs of a websocket; a `ws` socket is one. */
export interface LiveSocket {
  /** Bytes handed to `send` that the network has not taken yet. */
  readonly bufferedAmount: number;
  send(text: string): void;
  ping(): void;
  close(code: number, reason: string): void;
  /** Ends it without a word, when it does not answer any more. */
  terminate(): void;
  on(event: "message", listener: (data: SocketData, isBinary: boolean) => void): unknown;
  on(event: "pong" | "close" | "error", listener: () => void): unknown;
}

export type SocketData = Buffer | ArrayBuffer | Buffer[];

export function textOf(data: SocketData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString("utf8");
  return Buffer.from(data as Buffer).toString("utf8");
}

/** Why the gateway ends a socket. */
export const closeCodes = {
  /** Everything that it followed has ended. */
  ended: 1000,
  /** The server goes away; another will answer. */
  shutdown: 1012,
  /** It takes less than is sent to it. */
  slow: 1013,
  /** A message is longer than any honest one. */
  tooBig: 1009,
  /** Neither message nor pong for too long. */
  silent: 4000,
  /** A credential that it listens with has ended. */
  expired: 4001,
  /** It asked for more channels than one socket may follow. */
  tooManyChannels: 4008,
} as const;
