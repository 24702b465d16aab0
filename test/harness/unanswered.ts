import type { Command, Redis } from "ioredis";

/** The server answers these when somebody pushes something, or when their time is over. */
const BLOCKING = new Set(["blmove", "blpop", "brpop", "bzpopmin"]);
/** And these never, as far as whoever waits for rest is concerned. */
const ENDLESS = new Set(["subscribe", "psubscribe", "monitor"]);
/** Rounds without anything new after which there is rest. */
const QUIET = 3;
/** Milliseconds that the answer to a blocking command may be on its way; a connection that is cut never gets it. */
const LONGEST_WAY = 250;

/**
 * What a test's connections sent to its Redis and was not answered yet. A virtual clock that waits for it gives every
 * process the time it needs, however busy the machine is.
 */
export class Unanswered {
  readonly #commands = new Set<Promise<void>>();
  readonly #blocked = new Set<Promise<void>>();
  #sent = 0;

  /** Watches a connection, and all that are made like it. */
  watch(client: Redis): void {
    const send = client.sendCommand.bind(client);
    client.sendCommand = ((command: Command, stream?: never) => {
      this.#sent += 1;
      const name = command.name.toLowerCase();
      if (client.status === "ready" && !ENDLESS.has(name))
        add(BLOCKING.has(name) ? this.#blocked : this.#commands, command.promise);
      return send(command, stream);
    }) as Redis["sendCommand"];
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (...options) => {
      const like = duplicate(...options);
      this.watch(like);
      return like;
    };
  }

  /** Waits until everything is answered and nobody had more to say to that. */
  async settled(look: Redis): Promise<void> {
    for (let quiet = 0; quiet < QUIET; quiet++) {
      const sent = this.#sent;
      await Promise.all(this.#commands);
      await new Promise(setImmediate);
      if (this.#sent > sent || this.#commands.size > 0 || (quiet === QUIET - 1 && (await this.#wakesSomebody(look))))
        quiet = -1;
    }
  }

  /** Whether the server has answered somebody who waited for a push, and that answer is still on its way. */
  async #wakesSomebody(look: Redis): Promise<boolean> {
    if (this.#blocked.size === 0) return false;
    const stillBlocked = Number(/^blocked_clients:(\d+)/m.exec(await look.info("clients"))?.[1]);
    if (stillBlocked >= this.#blocked.size) return false;
    let tooLong: NodeJS.Timeout | undefined;
    const limit = new Promise<false>((resolve) => {
      tooLong = setTimeout(() => resolve(false), LONGEST_WAY);
    });
    const woken = await Promise.race([limit, ...[...this.#blocked].map((answered) => answered.then(() => true))]);
    clearTimeout(tooLong);
    return woken;
  }
}

function add(to: Set<Promise<void>>, promise: Promise<unknown>): void {
  const forget = () => void to.delete(answered);
  const answered = promise.then(forget, forget);
  to.add(answered);
}
