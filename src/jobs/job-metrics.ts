import type { Metrics } from "../kernel/metrics.ts";

export type JobOutcome =
  | "ok"
  | "error"
  | "timeout"
  | "skipped_locked"
  | "coalesced"
  | "bounced"
  | "deferred"
  | "crashed";

const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3600];

/** Durations of one runner, by bucket. */
class Durations {
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;
  total = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket++;
    this.counts[bucket]!++;
    this.sum += seconds;
    this.total++;
  }
}

/**
 * Numbers about every job. They are kept in plain arrays and turned into Prometheus series only when somebody scrapes,
 * because hashing labels for each job would cost more than taking and finishing it.
 */
export class JobMetrics {
  readonly #outcomes = new Map<string, Map<JobOutcome, number>>();
  readonly #seconds = new Map<string, Durations>();
  readonly #waits = new Map<string, Durations>();

  constructor(metrics: Metrics) {
    const register = (name: string, help: string, type: "counter" | "histogram", values: () => unknown[]) =>
      metrics.registry.registerMetric({
        name,
        get: async () => ({ name, help, type, values: values(), aggregator: "sum" }),
        getForPromString: async () => ({ name, help, type, values: values(), aggregator: "sum" }),
        reset: () => {},
      } as never);
    register("carillon_jobs_total", "Jobs by runner and outcome", "counter", () =>
      [...this.#outcomes].flatMap(([runner, outcomes]) =>
        [...outcomes].map(([outcome, value]) => ({ value, labels: { runner, outcome } })),
      ),
    );
    register("carillon_job_seconds", "How long jobs run", "histogram", () =>
      series("carillon_job_seconds", this.#seconds),
    );
    register("carillon_job_wait_seconds", "How long jobs wait until they are taken", "histogram", () =>
      series("carillon_job_wait_seconds", this.#waits),
    );
  }

  count(runner: string, outcome: JobOutcome, by = 1): void {
    const outcomes = this.#outcomes.get(runner) ?? new Map<JobOutcome, number>();
    this.#outcomes.set(runner, outcomes);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + by);
  }

  ran(runner: string, seconds: number): void {
    durationsOf(this.#seconds, runner).add(seconds);
  }

  waited(runner: string, seconds: number): void {
    durationsOf(this.#waits, runner).add(Math.max(0, seconds));
  }
}

function durationsOf(byRunner: Map<string, Durations>, runner: string): Durations {
  const durations = byRunner.get(runner) ?? new Durations();
  byRunner.set(runner, durations);
  return durations;
}

function series(name: string, byRunner: Map<string, Durations>): unknown[] {
  return [...byRunner].flatMap(([runner, { counts, sum, total }]) => {
    let below = 0;
    const buckets = BUCKETS.map((le, index) => {
      below += counts[index]!;
      return { metricName: `${name}_bucket`, labels: { le, runner }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: "+Inf", runner }, value: total },
      { metricName: `${name}_sum`, labels: { runner }, value: sum },
      { metricName: `${name}_count`, labels: { runner }, value: total },
    ];
  });
}
