import type { ChannelName } from "../../kernel/keyspace/index.ts";

/** May listen, until then. */
export interface LiveGrant {
  readonly ok: true;
  /** Unix seconds: when the credential ends, and with it the socket. */
  readonly expiresAt: number;
}

export interface LiveRefusal {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
}

export interface LiveReplay {
  /** What happened so far, oldest first, as JSON values. */
  readonly events: readonly unknown[];
  /** Nothing will follow: the last of it is in `events`. */
  readonly ended?: boolean;
}

/** A family of channels that clients may follow, such as the progress of jobs. */
export interface LiveChannelKind {
  /** What its channels start with on the socket: `job:` for `job:crl_jp_…`. What follows is the name. */
  readonly prefix: string;
  authorize(jwt: string, name: string): Promise<LiveGrant | LiveRefusal> | LiveGrant | LiveRefusal;
  /** The Redis channel of a name. */
  channelKey(name: string): ChannelName;
  /** The events after `since`, all that are kept when it is undefined. Asked once the subscription stands. */
  replay(name: string, since: number | undefined): Promise<LiveReplay>;
  /** True for the message after which nothing comes, which is itself no event. */
  endsWith?(message: string): boolean;
  /** An event's sequence number; default its `seq`. Events without one are never taken for duplicates. */
  sequence?(event: unknown): number | undefined;
}

export function sequenceOf(kind: LiveChannelKind, event: unknown): number | undefined {
  if (kind.sequence) return kind.sequence(event);
  const seq = (event as { readonly seq?: unknown } | null)?.seq;
  return typeof seq === "number" ? seq : undefined;
}
