import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The Prometheus metrics of one process. Asking for a metric twice gives the same one. */
export class Metrics {
  readonly registry = new Registry();

  /** Adds the process's own numbers: memory, event loop lag, garbage collection. */
  withProcessMetrics(): this {
    collectDefaultMetrics({ register: this.registry });
    return this;
  }

  counter<L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return (
      (this.registry.getSingleMetric(name) as Counter<L> | undefined) ??
      new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] })
    );
  }

  gauge<L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    return (
      (this.registry.getSingleMetric(name) as Gauge<L> | undefined) ??
      new Gauge({ name, help, labelNames: [...labelNames], registers: [this.registry] })
    );
  }

  histogram<L extends string>(name: string, help: string, labelNames: readonly L[] = []): Histogram<L> {
    return (
      (this.registry.getSingleMetric(name) as Histogram<L> | undefined) ??
      new Histogram({
        name,
        help,
        labelNames: [...labelNames],
        buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300],
        registers: [this.registry],
      })
    );
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }
}
