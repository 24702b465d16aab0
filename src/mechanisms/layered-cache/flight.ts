import type { Clock } from "../../kernel/clock.ts";

/**
 * One lookup under way in this process; everybody who asks for the id meanwhile waits for it.
 *
 *   gathered --> reading --> landed             somebody had the value: Redis, the source
 *                   |
 *                   +------> waiting --> landed       another process fills it, and its frame came
 *                                   \--> gathered     purged, lock ended, or frames were missed: look again
 *
 * A purge that arrives while reading makes what is being read unfit to keep: the flight is struck, so that later callers
 * start a new one, and its value is answered to those who asked before the purge but stored nowhere.
 */
export class Flight<Value> {
  readonly id: string;
  readonly landed: Promise<Value | undefined>;
  mode: "gathered" | "reading" | "waiting" | "landed" = "gathered";
  /** A purge came while reading. */
  struck = false;
  /** A fill frame came while reading: newer than whatever this flight will read. */
  filled: { readonly value: Value } | undefined;
  /** How often a purge or a reconnect ended its waiting. */
  disturbed = 0;
  /** Somebody has been told that it waited in vain. */
  reported = false;
  /** On the monotonic clock: when it stops waiting for others. Set by its first wait. */
  patienceEnds: number | undefined;
  #wake: AbortController | undefined;
  #resolve!: (value: Value | undefined) => void;
  #reject!: (error: unknown) => void;

  constructor(id: string) {
    this.id = id;
    this.landed = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  begin(): void {
    this.mode = "reading";
    this.struck = false;
    this.filled = undefined;
  }

  strike(): void {
    this.struck = true;
    this.filled = undefined;
  }

  /** Waits for another's fill; `in vain` when the time is up and nothing has come. */
  async wait(clock: Clock, seconds: number): Promise<"landed" | "disturbed" | "in vain"> {
    this.mode = "waiting";
    this.#wake = new AbortController();
    const slept = await clock.sleep(seconds, this.#wake.signal);
    if ((this.mode as string) === "landed") return "landed";
    return slept ? "in vain" : "disturbed";
  }

  disturb(): void {
    this.disturbed += 1;
    this.#wake?.abort();
  }

  /** Ends as another flight of the same id ends. */
  follow(other: Flight<Value>): void {
    this.mode = "waiting";
    other.landed.then(
      (value) => this.land(value),
      (error) => this.fail(error),
    );
  }

  land(value: Value | undefined): void {
    this.mode = "landed";
    this.#resolve(value);
    this.#wake?.abort();
  }

  fail(error: unknown): void {
    this.mode = "landed";
    this.#reject(error);
  }
}
