import type { Failure } from "./failure.ts";

/** A notification for one device. */
export interface PushMessage {
  /** The device's push token. */
  readonly to: string;
  readonly title: string;
  readonly body: string;
  /** The Android channel it is shown in. */
  readonly channelId?: string | null;
}

/** What the provider answered for one message, field by field as it came; nothing that it lacks is made up. */
export interface PushTicket {
  readonly status: string;
  readonly id: string | null;
  readonly message: string | null;
  readonly details: unknown;
}

/** What became of a message that had a ticket. */
export interface PushReceipt {
  readonly status: string;
  readonly message: string | null;
  readonly details: unknown;
}

/** Identifiers that both sending and checking may answer. */
export type PushRequestIdentifier =
  | "DeviceNotRegistered"
  | "ClientError429"
  | "ClientErrorOther"
  | "ServerError"
  | "InternalError"
  | "NetworkError";

export type PushReceiptIdentifier =
  | PushRequestIdentifier
  | "MessageTooBig"
  | "MessageRateExceeded"
  | "MismatchSenderId"
  | "InvalidCredentials"
  | "NotReadyYet";

export type TicketOutcome =
  | { readonly ok: true; readonly ticket: PushTicket & { readonly status: "ok"; readonly id: string } }
  | (Failure<PushRequestIdentifier> & { readonly ticket: PushTicket | null });

export type ReceiptOutcome =
  | { readonly ok: true; readonly receipt: PushReceipt & { readonly status: "ok" } }
  | (Failure<PushReceiptIdentifier> & { readonly receipt: PushReceipt | null });

export const MAX_PUSH_MESSAGES = 100;
export const MAX_PUSH_RECEIPTS = 1_000;

/** Hands notifications to the networks of the device makers. A good receipt means: handed on, not: shown. */
export interface PushProvider {
  readonly name: string;
  /** One outcome a message, in order. At most `MAX_PUSH_MESSAGES`. */
  send(messages: readonly PushMessage[]): Promise<TicketOutcome[]>;
  /** An outcome for every ticket id asked for. At most `MAX_PUSH_RECEIPTS`. */
  receipts(ids: readonly string[]): Promise<Map<string, ReceiptOutcome>>;
}

/** Asking for more is a mistake in the caller, which no provider can answer for. */
export function requireAtMost(limit: number, items: readonly unknown[], what: string): void {
  if (items.length > limit) throw new RangeError(`at most ${limit} ${what} fit into one request, not ${items.length}`);
}
