import type { KernelContext } from "../../kernel/context.ts";
import { defineErrors } from "../../kernel/errors.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript } from "../../kernel/redis/index.ts";

export const singleFlightErrors = defineErrors({
  reserved_value: {
    status: 500,
    doc: "A single-flight value must not be the text 1, which marks a fetch under way.",
    hint: "Choose another text for this value, such as 0 for none.",
  },
});

const forgetMarker = defineScript({
  name: "single_flight.forget_marker",
  file: new URL("./scripts/forget_marker.lua", import.meta.url),
  keys: ["value"],
  args: [],
  idempotent: true,
  reply: (raw: number) => raw === 1,
});

const MARKER = "1";
const MARKER_SECONDS = 10;
const PATIENCE_SECONDS = 12;
const FIRST_POLLS = [0.1, 0.2, 0.4];
const LATER_POLL = 1;

export type SingleFlightContext = Pick<KernelContext, "clock" | "cacheRedis">;

export interface SingleFlightPlan<Value> {
  key(id: string): KeyName<"string">;
  readonly codec: Codec<Value>;
  /** Seconds that a value is kept. */
  readonly ttl: number;
  /** Reads the source; undefined when it has nothing, which is then not kept. */
  fetch(id: string): Promise<Value | undefined>;
}

/**
 * A value that one instance fetches while all others wait for it, with nothing but its own key.
 *
 *   absent --SET NX--> marker `1` --SET--> value --TTL--> absent
 *                         |
 *                         +-- none at the source, failure, or 10 s --> absent
 *
 * One command decides everything: `SET key 1 NX GET EX 10` answers nil to the one who now fetches, `1` to those who
 * wait, and the value to all others. A fetcher that dies leaves the marker for at most 10 s; then the next who looks
 * becomes the fetcher. Nobody waits longer than 12 s: after that one reads the source for oneself and writes nothing.
 */
export class SingleFlight<Value> {
  readonly #context: SingleFlightContext;
  readonly #plan: SingleFlightPlan<Value>;
  readonly #underWay = new Map<string, Promise<Value | undefined>>();

  constructor(context: SingleFlightContext, plan: SingleFlightPlan<Value>) {
    this.#context = context;
    this.#plan = plan;
  }

  /** The value, or undefined when the source has none. Those who ask in one process share one lookup. */
  get(id: string): Promise<Value | undefined> {
    const known = this.#underWay.get(id);
    if (known) return known;
    const lookup = this.#look(id).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, lookup);
    return lookup;
  }

  /** Forgets the value, so that the next who asks fetches it anew. */
  async forget(id: string): Promise<void> {
    await this.#context.cacheRedis.commands.del(this.#key(id));
  }

  async #look(id: string): Promise<Value | undefined> {
    const { clock } = this.#context;
    const patienceEnds = clock.monotonic() + PATIENCE_SECONDS;
    for (let poll = 0; ; poll++) {
      const found = await this.#askToFetch(id);
      if (found === null) return await this.#fetch(id);
      if (!found.equals(Buffer.from(MARKER))) return this.#plan.codec.decode(found);
      const left = patienceEnds - clock.monotonic();
      if (left <= 0) return await this.#plan.fetch(id);
      await clock.sleep(Math.min(FIRST_POLLS[poll] ?? LATER_POLL, left));
    }
  }

  async #askToFetch(id: string): Promise<Buffer | null> {
    const { commands } = this.#context.cacheRedis;
    return await commands.setBuffer(this.#key(id), MARKER, "EX", MARKER_SECONDS, "NX", "GET");
  }

  async #fetch(id: string): Promise<Value | undefined> {
    const { commands } = this.#context.cacheRedis;
    try {
      const value = await this.#plan.fetch(id);
      if (value === undefined) await commands.del(this.#key(id));
      else await commands.set(this.#key(id), this.#encode(value), "EX", this.#plan.ttl);
      return value;
    } catch (error) {
      await this.#context.cacheRedis.run(forgetMarker, [this.#plan.key(id)], []).catch(() => {});
      throw error;
    }
  }

  #encode(value: Value): Buffer {
    const encoded = Buffer.from(this.#plan.codec.encode(value) as string);
    if (encoded.equals(Buffer.from(MARKER))) throw singleFlightErrors.reserved_value();
    return encoded;
  }

  #key(id: string): string {
    return this.#context.cacheRedis.topology.key(this.#plan.key(id));
  }
}
