import type { Context } from "../../jobs/context.ts";
import type { Stats } from "../../mechanisms/dated-counters/index.ts";
import type { ContactContext, ContactTransaction } from "./change.ts";
import type { Channel, EmailScope } from "./tables.ts";

/**
 * What other rooms do when contact methods change. They stand below this room in the floor plan and may use it, so this
 * room cannot call them by name: they install what they do, once, when they are loaded. Until they do, nothing happens.
 */
export interface ContactEffects {
  readonly reminders: ReminderEffects;
  readonly reminderSettings: ReminderSettings;
  readonly tokenCounts: TokenCounts;
  readonly verificationMail: VerificationMail;
  readonly unsubscriptions: Unsubscriptions | undefined;
}

/** Why a daily reminder comes into being, as its statistics name it. */
export type AddedReason =
  | "account_created"
  | "email_added"
  | "phone_verify_finish"
  | "push_token_added"
  | "sms_start"
  | "klaviyo";
export type RemovedReason = "account_deleted" | "user" | "sms_stop" | "unreachable";

/** Something happened that may have made this user reachable or unreachable on this channel. */
export interface ReachChange {
  readonly userId: number;
  readonly channel: Channel;
  /** The reason to state if the user gets a reminder by it, or loses one. */
  readonly ifAdded: AddedReason;
  readonly ifRemoved: RemovedReason;
}

export type EffectContext = Pick<Context, "clock" | "config" | "log">;

export interface ReminderEffects {
  /**
   * Adds or drops daily reminders in the transaction of the change, one call for all users of it. What is counted on
   * `stats` commits with the rows.
   */
  reachChanged(
    tx: ContactTransaction,
    changes: readonly ReachChange[],
    surroundings: { readonly ctx: EffectContext; readonly stats: Stats },
  ): Promise<void>;
}

/** What the reminders room knows of people's own choices. */
export interface ReminderSettings {
  /** The channels on which this user gets reminders although they have not chosen their times since then. */
  olderThan(ctx: Pick<Context, "sql">, userSub: string, since: number): Promise<readonly Channel[]>;
}

export type TokenEvent =
  | "created"
  | "reassigned"
  | "refreshed"
  | "deleted_due_to_user_deletion"
  | "deleted_due_to_unrecognized_ticket"
  | "deleted_due_to_unrecognized_receipt"
  | "deleted_due_to_token_limit";

/** The push channel counts tokens in a family of its own; its counts commit with the rows too. */
export interface TokenCounts {
  count(stats: Stats, event: TokenEvent, by: number): void;
}

export interface VerificationMail {
  /** A person added an address that waits to be verified. Runs in the transaction that inserts it. */
  emailAdded(
    tx: ContactTransaction,
    added: { readonly userId: number; readonly sub: string; readonly uid: string; readonly email: string },
    surroundings: { readonly ctx: EffectContext },
  ): Promise<void>;
}

/** A person wants no more messages at an address. */
export interface Unsubscribed {
  /** The same for the same wish, whoever tells of it how often. */
  readonly key: string;
  readonly channel: Channel;
  readonly address: string;
  /** By a link or a page, by a text with STOP, or by the switch in their settings. */
  readonly reason: "unsubscribed" | "stop" | "switched_off";
  /** What mails no longer reach it; null for other channels, which know no lists. */
  readonly scope: EmailScope | null;
  /** Each account with the address is told of by itself; null when there is none. */
  readonly userSub: string | null;
  readonly at: number;
}

export interface Unsubscriptions {
  /** One call for all of a change, after it was committed. Must not fail for a reason of its own. */
  told(ctx: ContactContext, unsubscribed: readonly Unsubscribed[]): Promise<void>;
}

const none: ContactEffects = {
  reminders: { reachChanged: async () => {} },
  reminderSettings: { olderThan: async () => [] },
  tokenCounts: { count: () => {} },
  verificationMail: { emailAdded: async () => {} },
  unsubscriptions: undefined,
};

let installed: ContactEffects = none;

/** The effects there are now. */
export function effects(): ContactEffects {
  return installed;
}

/** Installs effects beside those there are, and answers how to take them away again. */
export function installEffects(added: Partial<ContactEffects>): () => void {
  const before = installed;
  installed = { ...installed, ...added };
  return () => {
    installed = before;
  };
}
