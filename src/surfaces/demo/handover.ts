import type { RedisConnection } from "../../kernel/redis/index.ts";
import { pagesOf } from "./scratch.ts";

/** Keys of workers and what they hold, which belong to processes and end with them; jobs that wait for their time do not. */
const PROCESSES = /^(rjobs(:|$)|jobs:(?!delayed$))/;
const COUNTS = /^(stats:|daily_reminders:counts$)/;
/** Counts of people as they are, and of changes that no family of statistics stores. */
const OF_PEOPLE = /^(daily_reminders:counts|stats:(daily_)?user_notification_settings:.+)$/;

/**
 * Gives what a past left in its own Redis to the house, whose present begins where that past ends: days that are still
 * counted, reminders that wait for their time, flags that still hold. Counts are added to those that are there; apart
 * from them, whatever the house has already stays as it is.
 */
export function handOver(from: RedisConnection, to: RedisConnection): Promise<void> {
  return copyAll(from, to, (key) => !PROCESSES.test(key));
}

/** The same for a house that has a present already: only counts of people, who are more or fewer now. */
export function handOverPeople(from: RedisConnection, to: RedisConnection): Promise<void> {
  return copyAll(from, to, (key) => OF_PEOPLE.test(key));
}

async function copyAll(from: RedisConnection, to: RedisConnection, isWanted: (key: string) => boolean): Promise<void> {
  for await (const keys of pagesOf(from.commands))
    for (const key of keys) if (isWanted(key)) await copy(from.commands, to.commands, key);
}

type Commands = RedisConnection["commands"];

async function copy(from: Commands, to: Commands, key: string): Promise<void> {
  const [type, left, isThere] = await Promise.all([from.type(key), from.pttl(key), to.exists(key)]);
  if (isThere === 1) return COUNTS.test(key) ? add(from, to, key, type) : undefined;
  switch (type) {
    case "string":
      await to.set(key, await from.getBuffer(key).then((value) => value ?? ""));
      break;
    case "hash":
      await to.hset(key, await from.hgetallBuffer(key));
      break;
    case "list":
      await to.rpush(key, ...(await from.lrangeBuffer(key, 0, -1)));
      break;
    case "set":
      await to.sadd(key, ...(await from.smembersBuffer(key)));
      break;
    case "zset": {
      const members = await from.zrangeBuffer(key, 0, "-1", "WITHSCORES");
      await to.zadd(key, ...members.flatMap((_, at) => (at % 2 === 0 ? [String(members[at + 1]), members[at]!] : [])));
      break;
    }
  }
  if (left > 0) await to.pexpire(key, left);
}

/** A day that both have counted on holds the sum; the earliest day is the earlier of the two. */
async function add(from: Commands, to: Commands, key: string, type: string): Promise<void> {
  if (type === "string") {
    const [theirs, ours] = [await from.get(key), await to.get(key)];
    if (Number(theirs) < Number(ours)) await to.set(key, theirs!);
    return;
  }
  const counts = Object.entries(await from.hgetall(key)).filter(([, count]) => /^-?\d+$/.test(count));
  await Promise.all(counts.map(([field, count]) => to.hincrby(key, field, Number(count))));
}
