import { parseEntry } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/index.ts";
import type { Invariant } from "../../kernel/keyspace/index.ts";

const PROGRESS_EVENTS = 50;
const SCAN_COUNT = 1000;
const PAGE = 1000;

type Checked = Parameters<Invariant["check"]>[0];

export const invariants: readonly Invariant[] = [
  {
    name: "jobs:entries_are_jobs",
    doc: "Every entry of a job queue is a job.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const lists = [jobKeys.hot(), ...[1, 2].map((category) => jobKeys.hotByCategory({ category }))];
      const faults: string[] = [];
      for (const key of lists)
        for (let from = 0; ; from += PAGE) {
          const page = await commands.lrange(topology.key(key), from, from + PAGE - 1);
          faults.push(...page.filter((raw) => !parseEntry(raw).ok).map((raw) => `${key} holds ${raw.slice(0, 60)}`));
          if (page.length < PAGE) break;
        }
      return faults;
    },
  },
  {
    name: "jobs:workers_are_whole",
    doc: "A worker is in the set of workers exactly when its hash exists, and only such a worker holds entries.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const members = new Set(await commands.zrange(topology.key(jobKeys.workers()), "0", "-1"));
      const hashes = await parametersOf(ctx, jobKeys.worker.pattern, (name) => jobKeys.worker.compiled.match(name));
      const running = await parametersOf(ctx, jobKeys.running.pattern, (name) => jobKeys.running.compiled.match(name));
      return [
        ...[...members].filter((uid) => !hashes.has(uid)).map((uid) => `worker ${uid} has no hash`),
        ...[...hashes].filter((uid) => !members.has(uid)).map((uid) => `the hash of worker ${uid} has no member`),
        ...[...running].filter((uid) => !members.has(uid)).map((uid) => `${uid} holds entries and is not registered`),
      ];
    },
  },
  {
    name: "rjobs:schedule_is_whole",
    doc: "The schedule has a hash exactly when it has jobs, and no job is both scheduled and being dispatched.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const [hash, scheduled, purgatory] = await Promise.all([
        commands.exists(topology.key(jobKeys.recurringHash())),
        commands.zrange(topology.key(jobKeys.recurring()), "0", "-1"),
        commands.smembers(topology.key(jobKeys.recurringPurgatory())),
      ]);
      const known = new Set(scheduled);
      const faults = purgatory
        .filter((digest) => known.has(digest))
        .map((digest) => `${digest} is scheduled and in purgatory`);
      if ((hash === 1) !== scheduled.length + purgatory.length > 0)
        faults.push(hash === 1 ? "rjobs:hash exists without a schedule" : "the schedule has no rjobs:hash");
      return faults;
    },
  },
  {
    name: "jobs:progress_is_bounded",
    doc: "A watched job keeps at most 50 events, and never more than it ever had.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const uids = await parametersOf(ctx, jobKeys.progressEvents.pattern, (name) =>
        jobKeys.progressEvents.compiled.match(name),
      );
      const faults: string[] = [];
      for (const job_uid of uids) {
        const [length, count] = await Promise.all([
          commands.llen(topology.key(jobKeys.progressEvents({ job_uid }))),
          commands.get(topology.key(jobKeys.progressCount({ job_uid }))),
        ]);
        if (length > PROGRESS_EVENTS || length > Number(count ?? 0))
          faults.push(`${job_uid} keeps ${length} events of ${count}`);
      }
      return faults;
    },
  },
];

/** The single parameter of every present key of a pattern. */
async function parametersOf(
  ctx: Checked,
  pattern: string,
  match: (name: string) => Record<string, string> | undefined,
): Promise<Set<string>> {
  const found = new Set<string>();
  let cursor = "0";
  do {
    const [next, page] = await ctx.redis.commands.scan(
      cursor,
      "MATCH",
      `*${pattern.replace(/\{[^}]*\}/g, "*")}`,
      "COUNT",
      SCAN_COUNT,
    );
    cursor = next;
    for (const name of page) {
      const parameters = match(ctx.redis.topology.documented(name));
      if (parameters) found.add(Object.values(parameters)[0]!);
    }
  } while (cursor !== "0");
  return found;
}
