import type { Context } from "../../jobs/context.ts";
import type { SmsFailure } from "../../providers/sms.ts";
import { suppressedAmong } from "../contacts/service.ts";
import { settings } from "./settings.ts";
import { heldStops } from "./wishes.ts";

/** Seconds for which it is believed who may be texted: a batch may take a minute, and STOP is to count within seconds. */
const BELIEVED = 5;

type RefusalContext = Pick<Context, "redis" | "sql" | "clock" | "config">;

const refused = (identifier: SmsFailure["identifier"], subidentifier: string, extra: string): SmsFailure => ({
  ok: false,
  identifier,
  subidentifier,
  retryable: false,
  extra,
});
const SUPPRESSED = refused("ApplicationErrorOther", "21610", "the number is suppressed");
const TEST_NUMBER = refused("ClientErrorOther", "418", "a test number");

/** Who of a batch must not be texted: one question for all numbers when the batch begins, and again while it goes on. */
export class Refusals {
  readonly #ctx: RefusalContext;
  readonly #numbers: readonly string[];
  #found: ReadonlyMap<string, SmsFailure> = new Map();
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(ctx: RefusalContext, numbers: Iterable<string>) {
    this.#ctx = ctx;
    this.#numbers = [...new Set(numbers)];
  }

  /** Why this number gets nothing, as far as is known now. */
  of(number: string): SmsFailure | undefined {
    return this.#found.get(number);
  }

  /** Makes sure that what is known is a few seconds old at most. */
  async refresh(): Promise<void> {
    if (this.#ctx.clock.monotonic() - this.#askedAt < BELIEVED) return;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const ctx = this.#ctx;
    const askedAt = ctx.clock.monotonic();
    // In this order: a wish is forgotten once SQL has it, so whoever looked there first could miss it in both places.
    const stopped = await heldStops(ctx, this.#numbers);
    const { phones: suppressed } = await suppressedAmong(ctx, { phones: this.#numbers });
    const found = new Map([...suppressed.keys(), ...stopped].map((number) => [number, SUPPRESSED]));
    for (const number of ctx.config.get(settings.testNumbers)) found.set(number, TEST_NUMBER);
    this.#found = found;
    this.#askedAt = askedAt;
  }
}
