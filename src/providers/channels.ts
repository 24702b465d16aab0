import type { EmailMessage, EmailOutcome, EmailProvider, EmailQuota, ProviderSuppressions } from "./email.ts";
import {
  type Carried,
  type ChainContext,
  ProviderChain,
  type ProviderState,
  told,
  unconfigured,
} from "./provider-chain.ts";
import type { PushMessage, PushProvider, ReceiptOutcome, TicketOutcome } from "./push.ts";
import type { ListedSms, SmsFailure, SmsFetchOutcome, SmsOutcome, SmsProvider } from "./sms.ts";

type CarriedList = { readonly ok: true; readonly messages: readonly Carried<ListedSms>[] } | SmsFailure;

/**
 * Each channel over all of its providers, with the interface of a single one. What is sent says who carried it; whoever
 * asks about it later passes that name, because ids of one provider mean nothing to another.
 */
export class PushChannel implements PushProvider {
  readonly name = "push";
  readonly #chain: ProviderChain<PushProvider>;

  constructor(ctx: ChainContext, providers: readonly PushProvider[]) {
    this.#chain = new ProviderChain(ctx, "push", providers);
  }

  /** How each provider fares, the preferred one first. */
  states(): Promise<ProviderState[]> {
    return this.#chain.states();
  }

  async send(messages: readonly PushMessage[]): Promise<Carried<TicketOutcome>[]> {
    const { result, ...how } = await this.#chain.carry(
      (one) => one.send(messages),
      (outcomes) => outcomes,
      () => messages.map((): TicketOutcome => ({ ...unconfigured("ClientErrorOther"), ticket: null })),
    );
    return result.map((outcome) => told(outcome, how));
  }

  receipts(ids: readonly string[], carrier?: string | null): Promise<Map<string, ReceiptOutcome>> {
    return this.#chain.ask(
      carrier,
      (one) => one.receipts(ids),
      (found) => found.values(),
      () => new Map(ids.map((id) => [id, { ...unconfigured("ClientErrorOther"), receipt: null }])),
    );
  }
}

export class SmsChannel implements SmsProvider {
  readonly name = "sms";
  readonly #chain: ProviderChain<SmsProvider>;

  constructor(ctx: ChainContext, providers: readonly SmsProvider[]) {
    this.#chain = new ProviderChain(ctx, "sms", providers);
  }

  /** How each provider fares, the preferred one first. */
  states(): Promise<ProviderState[]> {
    return this.#chain.states();
  }

  async create(message: { to: string; body: string; statusCallback?: string }): Promise<Carried<SmsOutcome>> {
    const { result, ...how } = await this.#chain.carry(
      (one) => one.create(message),
      (outcome) => [outcome],
      (): SmsOutcome => unconfigured("ClientErrorOther"),
    );
    return told(result, how);
  }

  /**
   * Without the name of its carrier a text is looked for at each provider, until one knows it. If none does, who could not
   * be asked has the word: it may be the one that has the text.
   */
  async fetch(sid: string, carrier?: string | null): Promise<SmsFetchOutcome> {
    const look = (one: SmsProvider) => one.fetch(sid);
    const unknown = () => unconfigured("ClientErrorOther");
    if (carrier) return this.#chain.ask(carrier, look, (outcome) => [outcome], unknown);
    const said = await this.#chain.askAround<SmsFetchOutcome>(
      look,
      (outcome) => [outcome],
      ({ ok }) => ok,
    );
    const known = said.find(({ ok }) => ok) ?? said.find((one) => !one.ok && one.identifier !== "ClientError404");
    return known ?? said[0] ?? unknown();
  }

  /**
   * Without the name of its carrier, what any provider has, each message with the name of the one that has it. A provider
   * that cannot tell leaves the question open.
   */
  async list(query: { to: string; since: number }, carrier?: string | null): Promise<CarriedList> {
    const look = async (one: SmsProvider): Promise<CarriedList> => {
      const listed = await one.list(query);
      if (!listed.ok) return listed;
      return { ok: true, messages: listed.messages.map((message) => ({ ...message, provider: one.name })) };
    };
    const unknown = () => unconfigured("ClientErrorOther");
    if (carrier) return this.#chain.ask(carrier, look, (outcome) => [outcome], unknown);
    const said = await this.#chain.askAround<CarriedList>(
      look,
      (outcome) => [outcome],
      (outcome) => !outcome.ok,
    );
    const last = said.at(-1) ?? unknown();
    return last.ok ? { ok: true, messages: said.flatMap((outcome) => (outcome.ok ? outcome.messages : [])) } : last;
  }
}

export class EmailChannel implements EmailProvider {
  readonly name = "email";
  readonly #chain: ProviderChain<EmailProvider>;

  constructor(ctx: ChainContext, providers: readonly EmailProvider[]) {
    this.#chain = new ProviderChain(ctx, "email", providers);
  }

  /** How each provider fares, the preferred one first. */
  states(): Promise<ProviderState[]> {
    return this.#chain.states();
  }

  /** Of the preferred provider; each accepted mail says it for the one that took it. */
  get hasReceipts(): boolean {
    return this.#chain.providers[0]?.hasReceipts ?? false;
  }

  /**
   * Who carried a mail of which only a report is known: reports come of providers with receipts alone, so that is clear
   * where there is one of them; null where two might have.
   */
  get reporter(): string | null {
    const [first, ...others] = this.#chain.providers.filter(({ hasReceipts }) => hasReceipts);
    return first && others.length === 0 ? first.name : null;
  }

  async send(message: EmailMessage): Promise<Carried<EmailOutcome>> {
    const { result, ...how } = await this.#chain.carry(
      (one) => one.send(message),
      (outcome) => [outcome],
      (): EmailOutcome => unconfigured("SESClientError"),
    );
    return told(result, how);
  }

  /** Of whoever would get the next mail: one that is down would be asked in vain, and its limits do not matter now. */
  async quota(maxAge?: number): Promise<EmailQuota | undefined> {
    return (await this.#chain.current())?.quota(maxAge);
  }

  /** Of the first provider that keeps such a list. */
  get suppressions(): ProviderSuppressions | undefined {
    return this.#chain.providers.find(({ suppressions }) => suppressions)?.suppressions;
  }

  async reset(): Promise<void> {
    await Promise.all(this.#chain.providers.map((provider) => provider.reset()));
  }

  async close(): Promise<void> {
    await Promise.all(this.#chain.providers.map((provider) => provider.close()));
  }
}
