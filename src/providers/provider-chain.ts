import type { KernelContext } from "../kernel/context.ts";
import { type CircuitBreaker, isOpen, recentErrors, recordErrors } from "../mechanisms/circuit-breaker/index.ts";
import type { Failure } from "./failure.ts";
import { CIRCUIT_THRESHOLD, CIRCUIT_WINDOW, providerKeys } from "./keys.ts";

/**
 * The providers of one channel, in the order in which they are preferred.
 *
 * What is authoritative is each provider's circuit, in Redis and the same for all processes: ten outages within five
 * minutes open it, and only time closes it. A call goes to the first provider whose circuit is closed. When all are open
 * it goes to the first one all the same: a message that nobody tries is certainly not delivered, and the outcome says
 * that it may be tried again.
 *
 * A call moves on to the next provider within itself only when the message was surely not taken: the provider refused our
 * credentials, could not be reached at all, or said itself that it is closed. After any other outage the message may have
 * been taken, and trying elsewhere could deliver it twice; it comes back, and its retry goes to whoever is up by then. A
 * refusal of the message itself is final: what one provider calls impossible is not tried on the next.
 *
 * A crash loses at most the note of one outage. Without Redis every circuit counts as closed.
 */
export class ProviderChain<P extends { readonly name: string }> {
  readonly #ctx: ChainContext;
  readonly #channel: ChannelName;
  readonly #links: readonly Link<P>[];
  readonly #toldAt = new Map<string, number>();
  readonly #counter: ReturnType<typeof messageCounter> | undefined;

  constructor(ctx: ChainContext, channel: ChannelName, providers: readonly P[]) {
    this.#ctx = ctx;
    this.#channel = channel;
    this.#counter = ctx.metrics && messageCounter(ctx.metrics);
    this.#links = providers.map((provider) => ({
      provider,
      breaker: {
        key: providerKeys.errors({ channel, provider: provider.name }),
        window: CIRCUIT_WINDOW,
        threshold: CIRCUIT_THRESHOLD,
      },
      open: false,
      checkedAt: Number.NEGATIVE_INFINITY,
    }));
    const names = providers.map(({ name }) => name);
    if (new Set(names).size < names.length)
      throw new TypeError(`${channel} names a provider twice: ${names.join(", ")}`);
  }

  get providers(): readonly P[] {
    return this.#links.map(({ provider }) => provider);
  }

  /**
   * Has a provider do it, and says which. `outcomes` finds what the circuit must know in the result. `relieved`: its
   * circuit is open now and another takes over, so whoever sends need not wait before the next message.
   */
  async carry<R>(
    call: (provider: P) => Promise<R>,
    outcomes: (result: R) => Iterable<Outcome>,
    withoutProvider: () => R,
  ): Promise<{ readonly result: R; readonly provider: string | null; readonly relieved: boolean }> {
    let refused: { readonly result: R; readonly provider: string } | undefined;
    const order = this.#links.length < 2 ? this.#links : await this.#order();
    for (const link of order) {
      const { result, untaken } = await this.#call(link, call, outcomes);
      const { name: provider } = link.provider;
      this.#count(link, outcomes(result));
      if (!untaken) return { result, provider, relieved: link.open && this.#links.some(({ open }) => !open) };
      refused ??= { result, provider };
    }
    if (refused) return { ...refused, relieved: false };
    this.#tell("none", `${this.#channel} has no provider: its messages wait until one is configured`);
    return { result: withoutProvider(), provider: null, relieved: false };
  }

  /** Who would get the next message. */
  async current(): Promise<P | undefined> {
    return (await this.#order())[0]?.provider;
  }

  /** How each provider fares, the preferred one first. */
  states(): Promise<ProviderState[]> {
    return Promise.all(
      this.#links.map(async ({ provider: { name }, breaker }) => {
        const outages = await recentErrors(this.#ctx, breaker);
        return { channel: this.#channel, provider: name, outages, open: outages >= CIRCUIT_THRESHOLD };
      }),
    );
  }

  /** Asks about what a provider already took: nobody else knows it. An unknown name means the preferred provider. */
  async ask<R>(
    carrier: string | null | undefined,
    call: (provider: P) => Promise<R>,
    outcomes: (result: R) => Iterable<Outcome>,
    withoutProvider: () => R,
  ): Promise<R> {
    const link = this.#links.find(({ provider }) => provider.name === carrier) ?? this.#links[0];
    if (!link) return withoutProvider();
    return (await this.#call(link, call, outcomes)).result;
  }

  /**
   * Asks about what some provider may have taken, when nobody wrote down which: one after the other, those that are up
   * first, until `settled` is content with an answer. Answers with all that was said, the last one last.
   */
  async askAround<R>(
    call: (provider: P) => Promise<R>,
    outcomes: (result: R) => Iterable<Outcome>,
    settled: (result: R) => boolean,
  ): Promise<R[]> {
    const said: R[] = [];
    for (const link of await this.#order()) {
      const { result } = await this.#call(link, call, outcomes);
      said.push(result);
      if (settled(result)) break;
    }
    return said;
  }

  async #call<R>(link: Link<P>, call: (provider: P) => Promise<R>, outcomes: (result: R) => Iterable<Outcome>) {
    const { name } = link.provider;
    const result = await call(link.provider);
    if (takenIn(outcomes(result)) !== undefined) return { result, untaken: false };
    const failures = [...outcomes(result)];
    if (failures.some((outcome) => !outcome.ok && outcome.outage)) await this.#note(link);
    const refusesUs = failures.length > 0 && failures.every((outcome) => !outcome.ok && outcome.credentials);
    if (refusesUs) this.#tell(name, `${name} refuses our credentials for ${this.#channel}; its messages are put back`);
    const untaken = failures.length > 0 && failures.every(isUntaken);
    return { result, untaken };
  }

  /** Closed circuits first, open ones as the last resort. A lone provider needs no look at its circuit. */
  async #order(): Promise<readonly Link<P>[]> {
    if (this.#links.length < 2) return this.#links;
    const open = await Promise.all(this.#links.map((link) => this.#isOpen(link)));
    return [...this.#links.filter((_, at) => !open[at]), ...this.#links.filter((_, at) => open[at])];
  }

  async #isOpen(link: Link<P>): Promise<boolean> {
    const now = this.#ctx.clock.monotonic();
    if (now - link.checkedAt < FRESH) return link.open;
    link.open = await this.#safely(() => isOpen(this.#ctx, link.breaker));
    link.checkedAt = now;
    return link.open;
  }

  async #note(link: Link<P>): Promise<void> {
    const open = await this.#safely(() => recordErrors(this.#ctx, link.breaker));
    // Looked at only now: of several calls that failed together, the first one that finds it open tells people.
    const before = link.open;
    link.open = open;
    link.checkedAt = this.#ctx.clock.monotonic();
    if (!link.open || before) return;
    const others = this.#links.length > 1 ? "others take over" : "there is no other";
    this.#ctx.alerts.warning(
      "providers:circuit_open",
      `${link.provider.name} failed ${CIRCUIT_THRESHOLD} times within ${CIRCUIT_WINDOW} s for ${this.#channel}; ${others}`,
    );
  }

  /** The outcome of a message must never be lost because its circuit could not be read or written. */
  async #safely(ask: () => Promise<boolean>): Promise<boolean> {
    try {
      return await ask();
    } catch (error) {
      this.#ctx.log.warn({ err: error, channel: this.#channel }, "a provider's circuit could not be asked");
      return false;
    }
  }

  #count({ provider: { name } }: Link<P>, outcomes: Iterable<Outcome>): void {
    if (!this.#counter) return;
    const taken = takenIn(outcomes);
    if (taken !== undefined) {
      if (taken > 0) this.#counter.inc({ channel: this.#channel, provider: name, outcome: "taken" }, taken);
      return;
    }
    const counts = new Map<string, number>();
    for (const outcome of outcomes) counts.set(wordFor(outcome), (counts.get(wordFor(outcome)) ?? 0) + 1);
    for (const [outcome, count] of counts)
      this.#counter.inc({ channel: this.#channel, provider: name, outcome }, count);
  }

  #tell(about: string, text: string): void {
    const now = this.#ctx.clock.monotonic();
    if (now - (this.#toldAt.get(about) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY) return;
    this.#toldAt.set(about, now);
    this.#ctx.alerts.warning("providers:credentials", text, { urgent: true });
  }
}

export type ChannelName = "push" | "sms" | "email";
export type ChainContext = Pick<KernelContext, "redis" | "clock" | "log" | "alerts"> &
  Partial<Pick<KernelContext, "metrics">>;

export interface ProviderState {
  readonly channel: ChannelName;
  readonly provider: string;
  /** Within the last five minutes. */
  readonly outages: number;
  /** While open, others take over. */
  readonly open: boolean;
}

const messageCounter = (metrics: KernelContext["metrics"]) =>
  metrics.counter(
    "carillon_provider_messages_total",
    "Messages given to a provider, by what it said: taken, refused, failed (may pass), credentials",
    ["channel", "provider", "outcome"],
  );

function wordFor(outcome: Outcome): "taken" | "refused" | "failed" | "credentials" {
  if (outcome.ok) return "taken";
  if (outcome.credentials) return "credentials";
  return outcome.retryable ? "failed" : "refused";
}

/** An outcome together with the name of the provider that the message was given to; null: there is none. */
export type Carried<O> = O & { readonly provider: string | null };

type Outcome = { readonly ok: true } | Failure<string>;

/** How many messages were taken, if all were: what nearly every answer says. */
function takenIn(outcomes: Iterable<Outcome>): number | undefined {
  let taken = 0;
  for (const { ok } of outcomes) {
    if (!ok) return undefined;
    taken += 1;
  }
  return taken;
}

const isUntaken = (outcome: Outcome) => !outcome.ok && (outcome.credentials === true || outcome.untaken === true);

interface Link<P> {
  readonly provider: P;
  readonly breaker: CircuitBreaker;
  open: boolean;
  /** By the monotonic clock. */
  checkedAt: number;
}

/** Seconds that a process trusts what it read of a circuit, so that a busy channel does not ask for every message. */
const FRESH = 1;
const TELL_EVERY = 3600;

/** An outcome as the channel tells it: who carried, and no word of waiting where another provider takes over. */
export function told<O extends { readonly ok: boolean }>(
  outcome: O,
  { provider, relieved }: { readonly provider: string | null; readonly relieved: boolean },
): Carried<O> {
  if (!relieved || outcome.ok) return { ...outcome, provider };
  const { backoff: _, ...rest } = outcome as O & { readonly backoff?: true };
  return { ...(rest as unknown as O), provider };
}

/** What a message meets that no provider was configured for: nothing is wrong with it, so it waits. */
export function unconfigured<I extends string>(identifier: I): Failure<I> {
  return {
    ok: false,
    identifier,
    subidentifier: null,
    retryable: false,
    extra: "no provider is configured",
    credentials: true,
  };
}
