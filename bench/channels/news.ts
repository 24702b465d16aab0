import type { KeyName } from "../../src/kernel/keyspace/index.ts";
import type { BenchHouse } from "./house.ts";

/** How long after a message a provider reports on it; the quickest of them need longer. */
const DELAY_MS = 100;

/**
 * The provider's reports, as the webhook leaves them: on the list of news, in groups. Taking them in over HTTP is measured
 * for itself, and happens in other processes.
 */
export class News {
  readonly #send: (raws: readonly (string | Buffer)[]) => Promise<void>;
  #waiting: (string | Buffer)[] = [];
  #ended = false;

  constructor(house: BenchHouse, list: KeyName<"list">, reconciliation: string) {
    const { redis, jobs } = house.outside;
    const key = redis.topology.key(list);
    const runner = jobs.runners.get(reconciliation)!;
    this.#send = async (raws) => {
      for (let from = 0; from < raws.length; from += 500)
        await redis.commands.rpush(key, ...raws.slice(from, from + 500));
      jobs.nudge(runner, {});
    };
  }

  report(raw: string | Buffer): void {
    if (this.#waiting.length === 0)
      setTimeout(() => {
        const ready = this.#waiting;
        this.#waiting = [];
        // What was said at the end of this time had none of it yet.
        setTimeout(() => void (this.#ended || this.#send(ready)), DELAY_MS);
      }, DELAY_MS / 10);
    this.#waiting.push(raw);
  }

  /** Nothing more is told: the house is about to close. */
  end(): void {
    this.#ended = true;
  }
}
