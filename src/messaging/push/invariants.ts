import { type Invariant, type KeyName, seenTwice } from "../../kernel/keyspace/index.ts";
import { keys } from "./keys.ts";
import { MOST_HELD } from "./line.ts";

type Redis = Parameters<Invariant["check"]>[0]["redis"];

interface Place {
  readonly key: KeyName<"list"> | KeyName<"zset">;
  readonly type: "list" | "zset";
  /** What all entries of this place say they are. */
  readonly aud: "send" | "check";
}

/** Every place on the way of a notification. */
const PLACES: readonly Place[] = [
  { key: keys.toSend(), type: "list", aud: "send" },
  { key: keys.sendPurgatory(), type: "list", aud: "send" },
  { key: keys.retrying(), type: "zset", aud: "send" },
  { key: keys.cold(), type: "zset", aud: "check" },
  { key: keys.hot(), type: "list", aud: "check" },
  { key: keys.ticketPurgatory(), type: "list", aud: "check" },
];

const PURGATORIES = [
  { key: keys.sendPurgatory(), lock: keys.sendLock(), report: keys.sendReport() },
  { key: keys.ticketPurgatory(), lock: keys.checkLock(), report: keys.checkReport() },
];

const PAGE = 1000;
/** Violations that are told; a broken queue may hold a million. */
const SHOWN = 100;
const TIME_TOLERANCE = 0.001;
/** A dead run's lock lives 120 s, and the next run comes within a minute; the rest is for a busy house. */
const LONGEST_UNATTENDED = 300;

export const invariants: readonly Invariant[] = [
  {
    name: "push:uid_once",
    doc: "a notification is in exactly one of the queues, purgatories and sets of its way",
    check: seenTwice(({ redis }) => uidsInTwoPlaces(redis)),
  },
  {
    name: "push:entries_in_place",
    doc: "what waits to be sent is a notification, and what waits for a receipt has a ticket",
    check: seenTwice(({ redis }) => misplaced(redis)),
  },
  {
    name: "push:cold_score",
    doc: "a ticket stands in the cold set by the time it first came there, and was never queued before that",
    async check({ redis }) {
      const wrong: string[] = [];
      for await (const { raw, score } of entriesOf(redis, { key: keys.cold(), type: "zset", aud: "check" })) {
        const { uid, initially_queued_at: first, last_queued_at: last } = fieldsOf(raw);
        if (typeof first !== "number" || typeof last !== "number" || wrong.length >= SHOWN) continue;
        if (Math.abs(first - score!) > TIME_TOLERANCE) wrong.push(`${uid} stands at ${score}, not at ${first}`);
        if (last < first) wrong.push(`${uid} was last queued before it was first queued`);
      }
      return wrong;
    },
  },
  {
    name: "push:purgatories_small",
    doc: `a purgatory holds at most ${MOST_HELD} notifications, what one run holds at once`,
    async check({ redis }) {
      const sizes = await Promise.all(PURGATORIES.map(({ key }) => redis.commands.llen(redis.topology.key(key))));
      return PURGATORIES.flatMap(({ key }, at) => (sizes[at]! > MOST_HELD ? [`${key} holds ${sizes[at]}`] : []));
    },
  },
  {
    name: "push:purgatories_attended",
    doc: `what a dead run left in a purgatory is taken up by the next one, within ${LONGEST_UNATTENDED} s`,
    async check({ redis, clock }) {
      const { commands, topology } = redis;
      const looks = await Promise.all(
        PURGATORIES.map(({ key, lock, report }) =>
          Promise.all([
            commands.llen(topology.key(key)),
            commands.exists(topology.key(lock)),
            commands.hget(topology.key(report), "last_started_at"),
          ]),
        ),
      );
      return PURGATORIES.flatMap(({ key }, at) => {
        const [size, held, startedAt] = looks[at]!;
        const since = clock.now() - Number(startedAt ?? 0);
        if (size === 0 || held === 1 || since <= LONGEST_UNATTENDED) return [];
        return [`${key} holds ${size} that nobody works on; start a worker`];
      });
    },
  },
];

/** All places at once, each page by page: the walks share their round trips. */
async function walk(redis: Redis, see: (raw: Buffer, place: Place) => void): Promise<void> {
  await Promise.all(
    PLACES.map(async (place) => {
      for await (const { raw } of entriesOf(redis, place)) see(raw, place);
    }),
  );
}

async function uidsInTwoPlaces(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const seen = new Map<string, KeyName<"list"> | KeyName<"zset">>();
  const twice = new Map<string, string>();
  await walk(redis, (raw, { key }) => {
    const { uid } = fieldsOf(raw);
    if (typeof uid !== "string") return;
    const other = seen.get(uid);
    if (other === undefined) seen.set(uid, key);
    else twice.set(uid, `${uid} is in ${[other, key].sort().join(" and ")}`);
  });
  return twice;
}

async function misplaced(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const wrong = new Map<string, string>();
  await walk(redis, (raw, { key, aud }) => {
    const { uid, aud: said, push_ticket: ticket } = fieldsOf(raw);
    if (said === undefined) return;
    if (said !== aud) wrong.set(`${key} ${uid}`, `${uid} in ${key} is not for "${aud}"`);
    else if (aud === "check" && !(ticket as { id?: unknown } | null)?.id)
      wrong.set(`${key} ${uid}`, `${uid} in ${key} has no ticket`);
  });
  return wrong;
}

async function* entriesOf(redis: Redis, { key, type }: Place): AsyncGenerator<{ raw: Buffer; score?: number }> {
  const { commands, topology } = redis;
  const name = topology.key(key);
  for (let from = 0; ; from += PAGE) {
    const to = from + PAGE - 1;
    if (type === "list") {
      const page = await commands.lrangeBuffer(name, from, to);
      for (const raw of page) yield { raw };
      if (page.length < PAGE) return;
    } else {
      const page = await commands.zrangeBuffer(name, from, String(to), "WITHSCORES");
      for (let at = 0; at < page.length; at += 2) yield { raw: page[at]!, score: Number(page[at + 1]!.toString()) };
      if (page.length < 2 * PAGE) return;
    }
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
