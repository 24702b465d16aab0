import type { Failure } from "./failure.ts";

/** One mail to one recipient, written out in full. */
export interface EmailMessage {
  /** The sender as the From header has it: `Name <address>`, or the address alone. */
  readonly from: string;
  readonly to: string;
  /** The whole message, headers first. */
  readonly mime: Buffer;
  /** What the provider repeats in its receipts, such as the template and the uid. */
  readonly tags?: Readonly<Record<string, string>>;
}

/**
 * The names begin with the first provider there was; every provider uses them, so that failures mean the same whoever
 * carried the mail. The provider's own word is the subidentifier.
 */
export type EmailIdentifier =
  | "SESTooManyRequestsException"
  | "SESNetworkError"
  | "SESServerError"
  | "SESClientError"
  | "SESInternalError";

export interface EmailFailure extends Failure<EmailIdentifier> {
  /** The provider stopped our account: no mail goes out until a person has spoken with it. */
  readonly accountStopped?: true;
  /** The mailbox does not exist: the address is to be suppressed as after a hard bounce. */
  readonly unreachable?: true;
}

export type EmailOutcome =
  | {
      readonly ok: true;
      /** What receipts will call this mail. */
      readonly messageId: string;
      /** Whether a receipt will come at all; if not, acceptance is the last that is heard. */
      readonly hasReceipts: boolean;
    }
  | EmailFailure;

export interface EmailQuota {
  readonly maxPerSecond: number;
  readonly max24h: number;
  readonly sent24h: number;
  readonly sendingEnabled: boolean;
}

/** An address that a provider writes to no more, for all who share the account. */
export interface ProviderSuppression {
  readonly email: string;
  readonly reason: "Bounce" | "Complaint";
}

/** A provider's own list of such addresses. Its methods throw what the provider or the network does. */
export interface ProviderSuppressions {
  /** What came to the list since then, page by page. */
  since(time: number): AsyncIterable<readonly ProviderSuppression[]>;
  add(suppression: ProviderSuppression): Promise<void>;
  /** Also well when the address was not on the list. */
  remove(email: string): Promise<void>;
}

/** Hands mails to the world. `send` never throws for what the provider or the network does. */
export interface EmailProvider {
  readonly name: string;
  readonly hasReceipts: boolean;
  send(message: EmailMessage): Promise<EmailOutcome>;
  /**
   * How much the provider lets us send, as it said at most so many seconds ago, ten minutes unless given; undefined where
   * it does not say.
   */
  quota(maxAge?: number): Promise<EmailQuota | undefined>;
  /** Where the provider keeps a list of its own. */
  readonly suppressions?: ProviderSuppressions;
  /** Forgets connections and credentials, so that the next mail starts afresh. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export const QUOTA_LIFE = 600;

/** `address` out of `Name <address>`. */
export function bareAddress(sender: string): string {
  return /<([^<>]*)>\s*$/.exec(sender)?.[1] ?? sender.trim();
}

/**
 * The same provider, refusing every recipient but those listed: an installation for trying things out must not write to
 * real people. An entry is an address or a domain.
 */
export function deliverOnlyTo(provider: EmailProvider, allowed: readonly string[]): EmailProvider {
  const entries = new Set(allowed.map((entry) => entry.toLowerCase().replace(/^@/, "")));
  return {
    name: provider.name,
    hasReceipts: provider.hasReceipts,
    ...(provider.suppressions ? { suppressions: provider.suppressions } : {}),
    quota: (maxAge) => provider.quota(maxAge),
    reset: () => provider.reset(),
    close: () => provider.close(),
    async send(message) {
      const address = message.to.toLowerCase();
      if (entries.has(address) || entries.has(address.slice(address.lastIndexOf("@") + 1)))
        return provider.send(message);
      return {
        ok: false,
        identifier: "SESClientError",
        subidentifier: "SuppressedInDevEnvironment",
        retryable: false,
        extra: "the recipient is not in email.deliverOnlyTo",
      };
    },
  };
}
