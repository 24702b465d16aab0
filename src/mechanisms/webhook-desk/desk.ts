import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { type DailyStats, Tally } from "../dated-counters/index.ts";
import { Gathering } from "../gathering/index.ts";
import { accept } from "./scripts.ts";

/** Why a webhook is not believed, as it is counted. */
export type WebhookRefusal =
  | "signature_missing"
  | "signature_invalid"
  | "body_parse_error"
  | "body_max_size_exceeded"
  | "body_read_error";

type Plain = Record<never, never>;
/** What statistics of webhooks count: each is received, and then refused, or verified and one of the other two. */
export type WebhookEvents = Readonly<
  Record<"received" | "verified" | "accepted" | "unprocessable" | WebhookRefusal, Plain>
>;

/** What became of one webhook. `nothing`: it is understood, and brings no news. */
export type TakenWebhook = { readonly at: number } & (
  | { readonly kind: "refused"; readonly refusal: WebhookRefusal }
  /** `flag`: repeats that come while it is set are counted, and bring their news no second time. */
  | { readonly kind: "news"; readonly raw: string | Buffer; readonly flag?: KeyName<"string"> }
  | { readonly kind: "senseless"; readonly raw: string }
  | { readonly kind: "nothing" }
);

export interface WebhookDeskPlan {
  readonly stats: DailyStats<WebhookEvents>;
  readonly event: KeyName<"list">;
  readonly unprocessable: KeyName<"list">;
  /** How many that make no sense are kept. */
  readonly kept: number;
  /** Seconds for which a flag is set. */
  readonly flagTtl?: number;
  /** Has the job start that works news in. */
  queued(): void;
  /** Called once for a row of webhooks whose signature is wrong, without one between them that fits. */
  manyForged?(count: number): void;
}

const GROUP = 500;
/** So many forged ones in a row mean that our own address or secret is wrong. */
const SUSPICIOUS = 20;

/**
 * Where the webhooks of one provider are handed in.
 *
 *   checked ──take──▶ gathering ──one script for the group──▶ in the queue and counted ──▶ answered
 *
 * Redis is authoritative. Whoever hands one in answers its sender after `take`, never before: a process that dies has not
 * answered, so the sender comes again, or is asked later. SQL has no part in it.
 */
export class WebhookDesk {
  readonly #ctx: Pick<KernelContext, "redis" | "clock" | "config" | "log" | "metrics">;
  readonly #plan: WebhookDeskPlan;
  readonly #gathering = new Gathering<TakenWebhook>({
    most: GROUP,
    returning: true,
    work: (group) => this.#store(group),
  });
  #forged = 0;

  constructor(ctx: Pick<KernelContext, "redis" | "clock" | "config" | "log" | "metrics">, plan: WebhookDeskPlan) {
    this.#ctx = ctx;
    this.#plan = plan;
  }

  /** Ends when the webhook is counted and its news is queued; fails when Redis could not do that. */
  take(taken: TakenWebhook): Promise<void> {
    if (taken.kind !== "refused") this.#forged = 0;
    else if (taken.refusal === "signature_invalid" && ++this.#forged === SUSPICIOUS)
      this.#plan.manyForged?.(SUSPICIOUS);
    return this.#gathering.join(taken);
  }

  async #store(group: readonly TakenWebhook[]): Promise<void> {
    const { event, unprocessable, kept, flagTtl = 0, queued } = this.#plan;
    const flags: string[] = [];
    const [flagged, plain, senseless]: [(string | Buffer)[], (string | Buffer)[], string[]] = [[], [], []];
    for (const taken of group)
      if (taken.kind === "senseless") senseless.push(taken.raw);
      else if (taken.kind === "news") {
        if (taken.flag === undefined) plain.push(taken.raw);
        else {
          flags.push(taken.flag);
          flagged.push(taken.raw);
        }
      }
    const tally = new Tally(this.#ctx);
    const block = this.#count(tally, group);
    const news = await this.#ctx.redis.run(
      accept,
      [event, unprocessable, ...flags, ...tally.keys],
      [
        kept,
        flagTtl * 1000,
        flagged.length,
        plain.length,
        senseless.length,
        ...flagged,
        ...plain,
        ...senseless,
        ...block,
      ],
    );
    if (news > 0) queued();
  }

  /** Each counts on the day it arrived; a group spans a moment, so its members are added up by second first. */
  #count(tally: Tally, group: readonly TakenWebhook[]): (string | number)[] {
    const { stats } = this.#plan;
    const seconds = new Map<number, Map<keyof WebhookEvents, number>>();
    for (const taken of group) {
      const second = Math.floor(taken.at);
      const counts = seconds.get(second) ?? new Map<keyof WebhookEvents, number>();
      seconds.set(second, counts);
      const outcome = outcomeOf(taken);
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    return tally.block((counting) => {
      for (const [at, counts] of seconds)
        for (const [outcome, by] of counts) {
          counting.incr(stats, "received", { at, by });
          if (outcome === "accepted" || outcome === "unprocessable") counting.incr(stats, "verified", { at, by });
          counting.incr(stats, outcome, { at, by });
        }
    });
  }
}

function outcomeOf(taken: TakenWebhook): keyof WebhookEvents {
  if (taken.kind === "refused") return taken.refusal;
  return taken.kind === "senseless" ? "unprocessable" : "accepted";
}
