import type { Context } from "../../src/jobs/index.ts";
import type { KeyName } from "../../src/kernel/keyspace/index.ts";

/** How long after a message a provider reports on it; the quickest of them need longer. */
const DELAY_MS = 100;

/**
 * The provider's reports, as the webhook leaves them: on the list of news, in groups. Taking them in over HTTP is measured
 * for itself.
 */
export class News {
  readonly #send: (raws: readonly (string | Buffer)[]) => Promise<void>;
  #waiting: (string | Buffer)[] = [];
  /** Counts the times that everything was dropped: what was on its way then does not arrive. */
  #drops = 0;

  constructor({ redis, jobs }: Pick<Context, "redis" | "jobs">, list: KeyName<"list">, reader: string) {
    const key = redis.topology.key(list);
    const runner = jobs.runners.get(reader)!;
    this.#send = async (raws) => {
      for (let from = 0; from < raws.length; from += 500)
        await redis.commands.rpush(key, ...raws.slice(from, from + 500));
      jobs.nudge(runner, {});
    };
  }

  report(raw: string | Buffer): void {
    if (this.#waiting.length === 0) {
      const drops = this.#drops;
      setTimeout(() => {
        const ready = this.#waiting;
        this.#waiting = [];
        // What was said at the end of this time had none of it yet.
        setTimeout(() => void (drops === this.#drops && this.#send(ready)), DELAY_MS);
      }, DELAY_MS / 10);
    }
    this.#waiting.push(raw);
  }

  /** What is not told yet never is: nobody is there to hear it. */
  drop(): void {
    this.#drops += 1;
  }
}
