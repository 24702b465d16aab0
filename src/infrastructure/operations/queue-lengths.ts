import { Gauge } from "prom-client";
import { type Context, jobKeys } from "../../jobs/index.ts";

const NAME = "carillon_queue_length";
/** Several scrapers, or an impatient one, ask Redis once in this many seconds. */
const FRESH_SECONDS = 5;
/** A scrape is answered without lengths rather than late. */
const PATIENCE_SECONDS = 1;
const CATEGORIES = [1, 2];

type Watched = Pick<Context, "redis" | "clock" | "metrics" | "catalogue" | "log">;

interface Queue {
  readonly key: string;
  readonly type: "list" | "zset";
}

/** Tells scrapers how long every list and sorted set with a fixed name is. Answers how to stop telling. */
export function watchQueueLengths(ctx: Watched): () => void {
  const queues = queuesOf(ctx);
  let readAt = Number.NEGATIVE_INFINITY;
  const gauge = new Gauge({
    name: NAME,
    help: "Entries in each queue: every list and sorted set that has a fixed name, and the queues by category",
    labelNames: ["key"],
    registers: [ctx.metrics.registry],
    async collect() {
      const now = ctx.clock.monotonic();
      if (now - readAt < FRESH_SECONDS) return;
      readAt = now;
      const lengths = await inTime(ctx, readLengths(ctx, queues));
      // Old lengths would look like a queue that stands still; none says that they are not known.
      gauge.reset();
      for (const [key, length] of lengths ?? []) gauge.set({ key }, length);
    },
  });
  return () => ctx.metrics.registry.removeSingleMetric(NAME);
}

function queuesOf({ catalogue }: Watched): readonly Queue[] {
  const fixed = catalogue.entries.flatMap(({ pattern, type, compiled, cache }) =>
    compiled.parameters.length === 0 && !cache && (type === "list" || type === "zset") ? [{ key: pattern, type }] : [],
  );
  const byCategory = CATEGORIES.map((category) => ({
    key: jobKeys.hotByCategory({ category }) as string,
    type: "list" as const,
  }));
  return [...fixed, ...byCategory];
}

async function readLengths({ redis }: Watched, queues: readonly Queue[]): Promise<[string, number][]> {
  const { commands, topology } = redis;
  return Promise.all(
    queues.map(async ({ key, type }): Promise<[string, number]> => {
      const copies = topology.copies(key);
      const lengths = await Promise.all(
        copies.map((copy) => (type === "list" ? commands.llen(copy) : commands.zcard(copy))),
      );
      return [key, lengths.reduce((sum, length) => sum + length, 0)];
    }),
  );
}

async function inTime<T>(ctx: Watched, reading: Promise<T>): Promise<T | undefined> {
  const read = new AbortController();
  const told = reading.catch((error: unknown) => {
    ctx.log.warn({ err: error }, "the lengths of queues could not be read");
    return undefined;
  });
  const patience = ctx.clock.sleep(PATIENCE_SECONDS, read.signal).then(() => undefined);
  try {
    return await Promise.race([told, patience]);
  } finally {
    read.abort();
  }
}
