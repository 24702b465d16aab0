import { Gauge } from "prom-client";
import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";

const NAME = "carillon_stats_today";
/** Several scrapers, or an impatient one, ask Redis once in this many seconds. */
const FRESH_SECONDS = 5;
/** A scrape is answered without counts rather than late. */
const PATIENCE_SECONDS = 1;

type Watched = Pick<KernelContext, "redis" | "clock" | "config" | "metrics" | "log">;
interface Count {
  readonly family: string;
  readonly event: string;
  readonly count: number;
}

/** Tells scrapers what was counted since midnight. Answers how to stop telling. */
export function watchToday(ctx: Watched, families: readonly StatsFamily[]): () => void {
  let readAt = Number.NEGATIVE_INFINITY;
  const gauge = new Gauge({
    name: NAME,
    help: "Events counted today, in the statistics timezone; every instance tells the same numbers",
    labelNames: ["family", "event"],
    registers: [ctx.metrics.registry],
    async collect() {
      const now = ctx.clock.monotonic();
      if (now - readAt < FRESH_SECONDS) return;
      readAt = now;
      const counts = await inTime(ctx, readToday(ctx, families));
      // Old counts would look like a day without events; none says that they are not known.
      gauge.reset();
      for (const { family, event, count } of counts ?? []) gauge.set({ family, event }, count);
    },
  });
  return () => ctx.metrics.registry.removeSingleMetric(NAME);
}

async function readToday(ctx: Watched, families: readonly StatsFamily[]): Promise<readonly Count[]> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const { commands, topology } = ctx.redis;
  const days = await Promise.all(families.map((family) => commands.hgetall(topology.key(family.day(today)))));
  return families.flatMap(({ name, events }, index) =>
    Object.keys(events).map((event) => ({ family: name, event, count: Number(days[index]![event] ?? 0) })),
  );
}

async function inTime<T>(ctx: Watched, work: Promise<T>): Promise<T | undefined> {
  const done = new AbortController();
  const answer = work.catch((error: unknown) => {
    ctx.log.warn({ err: error }, "today's counts cannot be read");
    return undefined;
  });
  const late = ctx.clock.sleep(PATIENCE_SECONDS, done.signal).then(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    done.abort();
  }
}
