import type { Invariant } from "../../kernel/keyspace/index.ts";
import { keys } from "./keys.ts";

type Redis = Parameters<Invariant["check"]>[0]["redis"];

/** Beyond the batch of a run, nothing is ever held. */
const LARGEST_PURGATORY = 600;
const PAGE = 1000;
const TIME_TOLERANCE = 0.001;

const lists = [keys.toSend(), keys.sendPurgatory(), keys.hot(), keys.ticketPurgatory()];
const zsets = [keys.retrying(), keys.cold()];

export const invariants: readonly Invariant[] = [
  {
    name: "push:uid_once",
    doc: "a notification is in exactly one of the queues, purgatories and sets of its way",
    async check({ redis }) {
      // An entry that moves while it is looked for may be seen twice; one that is in two places is seen so again.
      const first = await uidsSeenTwice(redis);
      if (first.size === 0) return [];
      const second = await uidsSeenTwice(redis);
      return [...first].flatMap(([uid, places]) => (second.has(uid) ? [`${uid} is in ${places.join(" and ")}`] : []));
    },
  },
  {
    name: "push:cold_score",
    doc: "a ticket stands in the cold set by the time it first came there, and was never queued before that",
    async check({ redis }) {
      const wrong: string[] = [];
      for await (const { raw, score } of membersOf(redis, keys.cold())) {
        const { uid, initially_queued_at: first, last_queued_at: last } = fieldsOf(raw);
        if (typeof first !== "number" || typeof last !== "number") continue;
        if (Math.abs(first - score) > TIME_TOLERANCE) wrong.push(`${uid} stands at ${score}, not at ${first}`);
        if (last < first) wrong.push(`${uid} was last queued before it was first queued`);
      }
      return wrong;
    },
  },
  {
    name: "push:purgatories_small",
    doc: `a purgatory holds at most ${LARGEST_PURGATORY} notifications`,
    async check({ redis }) {
      const purgatories = [keys.sendPurgatory(), keys.ticketPurgatory()];
      const sizes = await Promise.all(purgatories.map((key) => redis.commands.llen(redis.topology.key(key))));
      return purgatories.flatMap((key, at) => (sizes[at]! > LARGEST_PURGATORY ? [`${key} holds ${sizes[at]}`] : []));
    },
  },
];

async function uidsSeenTwice(redis: Redis): Promise<Map<string, readonly string[]>> {
  const places = new Map<string, string[]>();
  const see = (raw: Buffer, place: string) => {
    const { uid } = fieldsOf(raw);
    if (typeof uid === "string") places.set(uid, [...(places.get(uid) ?? []), place]);
  };
  for (const key of lists) for await (const raw of itemsOf(redis, key)) see(raw, key);
  for (const key of zsets) for await (const { raw } of membersOf(redis, key)) see(raw, key);
  return new Map([...places].filter(([, seen]) => seen.length > 1));
}

async function* itemsOf(redis: Redis, key: (typeof lists)[number]): AsyncGenerator<Buffer> {
  for (let from = 0; ; from += PAGE) {
    const page = await redis.commands.lrangeBuffer(redis.topology.key(key), from, from + PAGE - 1);
    yield* page;
    if (page.length < PAGE) return;
  }
}

async function* membersOf(redis: Redis, key: (typeof zsets)[number]): AsyncGenerator<{ raw: Buffer; score: number }> {
  for (let from = 0; ; from += PAGE) {
    const name = redis.topology.key(key);
    const page = await redis.commands.zrangeBuffer(name, from, String(from + PAGE - 1), "WITHSCORES");
    for (let at = 0; at < page.length; at += 2)
      yield { raw: page[at]!, score: Number(page[at + 1]!.toString("latin1")) };
    if (page.length < 2 * PAGE) return;
  }
}

/** The audit reports what cannot be read by itself. */
function fieldsOf(raw: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(raw.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
