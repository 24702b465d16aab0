import type { Alerts, RecordedAlert } from "../../kernel/alerts.ts";
import type { Clock } from "../../kernel/clock.ts";
import { CarillonError } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { RedisConnection } from "../../kernel/redis/index.ts";
import { pushCapped } from "../collections/index.ts";
import { alertKeys, RECENT_ALERTS, type RecentAlert } from "./keys.ts";
import { redact, truncate } from "./redact.ts";

export interface ReporterOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly redis: RedisConnection;
  readonly hostname: string;
  readonly alertWebhookUrl?: string;
  readonly opsWebhookUrl?: string;
}

const PER_WINDOW = 5;
const WINDOW = 3600;
const POST_TIMEOUT_MS = 5000;
const STACK_FRAMES = 5;
const PREVIEW = 100;
/** Deliveries on the way at once; beyond it alerts are only logged, so that a broken receiver cannot fill the memory. */
const MAX_OUTSTANDING = 100;
/** Identifiers remembered at once; they come from code, so more than this means that one holds data. */
const MAX_IDENTIFIERS = 1000;

interface Tally {
  readonly since: number;
  told: number;
  suppressed: number;
}

/**
 * Logs every alert, keeps it in Redis for the admin pages, and posts it to the configured webhooks.
 *
 * No method throws or waits: keeping and posting happen behind the caller's back, and whatever goes wrong there is
 * logged and forgotten. Each identifier is told five times an hour by each process; what is held back is still logged,
 * counted, and mentioned the next time that identifier is told.
 */
export class AlertReporter implements Alerts {
  readonly #options: ReporterOptions;
  readonly #tallies = new Map<string, Tally>();
  readonly #outstanding = new Set<Promise<void>>();

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  warning(identifier: string, text: string, options: { urgent?: boolean } = {}): void {
    const level = options.urgent ? "urgent" : "warning";
    this.#safely(() => {
      this.#options.log.warn({ identifier, alert: level }, redact(text));
      this.#tell(level, identifier, text);
    });
  }

  error(error: unknown, extra?: string): void {
    this.#safely(() => {
      const shownExtra = extra === undefined ? undefined : truncate(redact(extra));
      this.#options.log.error({ err: error, extra: shownExtra }, "an error was reported");
      const parts = [describe(error), shownExtra].filter((part) => part !== undefined);
      this.#tell("error", identifierOf(error), parts.join("\n"));
    });
  }

  ops(text: string): void {
    this.#safely(() => {
      this.#options.log.info({ alert: "ops" }, redact(text));
      this.#tell("ops", "ops", text, { unlimited: true });
    });
  }

  /** Resolves when everything that is on its way has arrived or failed; for shutdown and tests. */
  async settled(): Promise<void> {
    while (this.#outstanding.size > 0) await Promise.all(this.#outstanding);
  }

  #tell(level: RecordedAlert["level"], identifier: string, text: string, options: { unlimited?: boolean } = {}): void {
    const suppressed = options.unlimited ? 0 : this.#admit(identifier);
    if (suppressed === undefined) return;
    const { hostname, clock } = this.#options;
    const more = suppressed > 0 ? `\n${suppressed} more of these were held back before this one` : "";
    const body = redact(text);
    const alert: RecentAlert = {
      level,
      identifier,
      text: `${hostname} (pid ${process.pid}): ${body}${more}`,
      host: hostname,
      occurred_at: clock.now(),
    };
    this.#inBackground(() => this.#keep(alert));
    const url = this.#webhookFor(level);
    if (url) this.#inBackground(() => this.#post(url, { ...alert, preview: body.split("\n")[0]!.slice(0, PREVIEW) }));
  }

  /** How many were held back before, or undefined when this one is held back too. */
  #admit(identifier: string): number | undefined {
    const now = this.#options.clock.monotonic();
    const known = this.#tallies.get(identifier);
    if (!known || now - known.since >= WINDOW) {
      if (this.#tallies.size >= MAX_IDENTIFIERS && !known) this.#tallies.clear();
      this.#tallies.set(identifier, { since: now, told: 1, suppressed: 0 });
      return known?.suppressed ?? 0;
    }
    if (known.told >= PER_WINDOW) {
      known.suppressed += 1;
      return undefined;
    }
    known.told += 1;
    return 0;
  }

  #webhookFor(level: RecordedAlert["level"]): string | undefined {
    const { alertWebhookUrl, opsWebhookUrl } = this.#options;
    return level === "urgent" || level === "ops" ? (opsWebhookUrl ?? alertWebhookUrl) : alertWebhookUrl;
  }

  async #keep(alert: RecentAlert): Promise<void> {
    const { redis } = this.#options;
    await pushCapped({ redis }, alertKeys.recent(), [JSON.stringify(alert)], { cap: RECENT_ALERTS, newest: "left" });
  }

  async #post(url: string, alert: RecentAlert & { readonly preview: string }): Promise<void> {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(alert),
      redirect: "error",
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`);
  }

  #inBackground(work: () => Promise<void>): void {
    if (this.#outstanding.size >= MAX_OUTSTANDING) return;
    const running = work()
      // The webhook's address is a secret and some errors quote it, so only their kind is logged.
      .catch((error: unknown) => this.#options.log.warn({ error: nameOf(error) }, "an alert could not be delivered"))
      .finally(() => this.#outstanding.delete(running));
    this.#outstanding.add(running);
  }

  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      // An alert about an alert would go the same way; there is nobody left to tell but the log.
      try {
        this.#options.log.error({ error: nameOf(error) }, "an alert could not be made");
      } catch {}
    }
  }
}

function identifierOf(error: unknown): string {
  if (error instanceof CarillonError) return `error:${error.code}`;
  return `error:${nameOf(error)}`;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** The message and where it happened: the innermost frames, which say most. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return `${typeof error}: ${String(error)}`;
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message}`, ...frames.slice(0, STACK_FRAMES)].join("\n");
}
