import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { KernelContext } from "../../kernel/context.ts";
import { type ChartFrame, chartFrame } from "../../kernel/keyspace/frames.ts";
import type { RedisConnection } from "../../kernel/redis/index.ts";
import { calendarOf, readCounts, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { cacheSettings, DiskLayer } from "../../mechanisms/layered-cache/index.ts";
import { ChartCopies, type ChartCopy, etagOf, unpack } from "./chart-copies.ts";
import { type ChartSpan, chartSpan, drawChart, isProvisional } from "./charts.ts";
import { errors } from "./errors.ts";

/**
 * Where charts are asked for. SQL and Redis are authoritative; a chart of finished days is built once and then copied:
 *
 *   memory -> disk -> (frames of other instances fill both) -> source
 *
 * Within an instance those who ask for the same chart share one build. Whoever builds a finished chart tells all other
 * instances, which keep it as if they had built it. A provisional chart, whose last day may still change, is kept for a
 * minute and told to nobody. A lost frame costs one more build; a crash loses the memory, which the disk refills.
 */
type DeskContext = Pick<KernelContext, "clock" | "config" | "redis" | "sql" | "subscriber" | "log" | "metrics">;

const PROVISIONAL_SECONDS = 60;
const RETRY_AFTER = 5;
const LONGEST_SPAN = 366;
const compress = promisify(gzip);

export class ChartDesk {
  readonly #ctx: DeskContext;
  readonly #disk: DiskLayer | undefined;
  readonly #copies: ChartCopies;
  readonly #building = new Map<string, Promise<ChartCopy>>();
  readonly #unsubscribe: (() => Promise<void>)[] = [];

  constructor(ctx: DeskContext, options: { readonly folder?: string } = {}) {
    this.#ctx = ctx;
    this.#disk = options.folder === undefined ? undefined : new DiskLayer(options.folder, ctx.clock);
    this.#copies = new ChartCopies(ctx.clock, this.#disk);
  }

  /** How many charts are in memory. */
  get atHand(): number {
    return this.#copies.size;
  }

  /** Keeps what other instances tell of these families from now on. */
  async listen(families: readonly StatsFamily[]): Promise<void> {
    for (const family of families)
      if (family.channel !== undefined)
        this.#unsubscribe.push(
          await this.#ctx.subscriber.subscribe(family.channel, (raw) => this.receive(family, raw)),
        );
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) await unsubscribe();
    await this.#disk?.close();
  }

  /** The chart of the latest finished days, from the nearest place that has it. */
  async chart(family: StatsFamily, days: number): Promise<ChartCopy> {
    const span = chartSpan(calendarOf(this.#ctx), this.#ctx.clock.now(), family, days);
    const name = nameOf(family, span);
    const held = this.#copies.find(name);
    if (held) return held;
    const underWay = this.#building.get(name);
    if (underWay) return underWay;
    const building = this.#build(family, span).finally(() => this.#building.delete(name));
    this.#building.set(name, building);
    return building;
  }

  /** Keeps the chart of a frame if it can be one; says whether it was kept. */
  receive(family: StatsFamily, raw: Buffer): boolean {
    const frame = this.#acceptable(family, raw);
    const json = frame && unpack(frame.blob);
    if (!json) {
      this.#ctx.metrics
        .counter("carillon_frames_dropped_total", "Frames and cached values that could not be decoded", ["channel"])
        .inc({ channel: family.channel ?? "" });
      this.#ctx.log.warn({ channel: family.channel, bytes: raw.length }, "a frame is no chart of finished days");
      return false;
    }
    this.#copies.keep(nameOf(family, { start: frame.startDate, end: frame.endDate }), {
      // The frame is a piece of the connection's buffer, which would be kept alive by it.
      blob: Buffer.from(frame.blob),
      etag: etagOf(json),
      provisional: false,
      expiresAt: this.#midnight(),
    });
    return true;
  }

  #acceptable(family: StatsFamily, raw: Buffer): ChartFrame | undefined {
    try {
      const frame = chartFrame.decode(raw);
      const { end } = chartSpan(calendarOf(this.#ctx), this.#ctx.clock.now(), family, 0);
      return frame.endDate - frame.startDate <= LONGEST_SPAN && frame.endDate <= end ? frame : undefined;
    } catch {
      return undefined;
    }
  }

  async #build(family: StatsFamily, span: ChartSpan): Promise<ChartCopy> {
    const now = this.#ctx.clock.now();
    const read = await readCounts(this.#ctx, family, span.start, span.end).catch((cause: unknown) => {
      throw errors.source_unavailable({ retryAfter: RETRY_AFTER, cause });
    });
    const json = Buffer.from(JSON.stringify(drawChart(family, read.days)));
    const blob = await compress(json);
    const provisional = isProvisional(calendarOf(this.#ctx), now, family, read, span);
    const expiresAt = provisional ? now + PROVISIONAL_SECONDS : this.#midnight();
    const copy = { blob, etag: etagOf(json), provisional, expiresAt };
    this.#copies.keep(nameOf(family, span), copy);
    if (!provisional) await this.#tell(family, { startDate: span.start, endDate: span.end, blob });
    return copy;
  }

  /** Whoever asked gets the chart also when the others cannot be told. */
  async #tell(family: StatsFamily, frame: ChartFrame): Promise<void> {
    if (family.channel === undefined) return;
    await this.#ctx.redis.commands
      .publish(family.channel, chartFrame.encode(frame))
      .catch((error: unknown) => this.#ctx.log.warn({ err: error, family: family.name }, "a chart was not told"));
  }

  #midnight(): number {
    const calendar = calendarOf(this.#ctx);
    return calendar.startOf(calendar.unixDate(this.#ctx.clock.now()) + 1);
  }
}

function nameOf(family: StatsFamily, { start, end }: ChartSpan): string {
  return `${family.cachePrefix}:${start}:${end}`;
}

/** One desk per process, which a connection stands for. */
const desks = new WeakMap<RedisConnection, ChartDesk>();

/** The desk of this process; without `openDesk` one that has no disk and hears nothing. */
export function deskOf(ctx: DeskContext): ChartDesk {
  const desk = desks.get(ctx.redis) ?? new ChartDesk(ctx);
  desks.set(ctx.redis, desk);
  return desk;
}

/** Opens the desk of this process, with its disk and its ears. */
export async function openDesk(ctx: DeskContext, families: readonly StatsFamily[]): Promise<ChartDesk> {
  const desk = new ChartDesk(ctx, { folder: ctx.config.get(cacheSettings.folder) });
  desks.set(ctx.redis, desk);
  await desk.listen(families);
  return desk;
}
