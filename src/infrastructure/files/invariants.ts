import { sql } from "kysely";
import { jobKeys } from "../../jobs/keys.ts";
import type { Invariant, undecodable } from "../../kernel/keyspace/index.ts";
import { FileMember, fileMember, keys } from "./keys.ts";

type InvariantContext = Parameters<Invariant["check"]>[0];

const PAGE = 500;
const LATE = 900;
const WORKER_ALIVE = 60;
const OLD_ROW = 7200;
const SHOWN = 200;

async function* pages(ctx: InvariantContext): AsyncGenerator<{ member: string; score: number }[]> {
  const { commands, topology } = ctx.redis;
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(keys.purgatory()), start, String(start + PAGE - 1), "WITHSCORES");
    if (flat.length === 0) return;
    yield Array.from({ length: flat.length / 2 }, (_, index) => ({
      member: flat[2 * index]!,
      score: Number(flat[2 * index + 1]),
    }));
  }
}

function faultOf(member: string): string | undefined {
  try {
    fileMember.decode(Buffer.from(member));
    return undefined;
  } catch (error) {
    return (error as ReturnType<typeof undecodable>).message;
  }
}

const shown = (member: string) => member.slice(0, SHOWN);

export const invariants: readonly Invariant[] = [
  {
    name: "files:members_are_canonical",
    doc: "Every member of files:purgatory is canonical JSON of its declared shape.",
    async check(ctx) {
      const violations: string[] = [];
      for await (const page of pages(ctx))
        for (const { member } of page) {
          const fault = faultOf(member);
          if (fault) violations.push(`files:purgatory holds ${shown(member)}: ${fault}`);
        }
      return violations;
    },
  },
  {
    name: "files:in_one_set",
    doc: "No member of files:purgatory is in files:sweep_purgatory too.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const violations: string[] = [];
      for await (const page of pages(ctx)) {
        const members = page.map(({ member }) => member);
        const scores = await commands.zmscore(topology.key(keys.sweepPurgatory()), ...members);
        for (const [index, score] of scores.entries())
          if (score !== null)
            violations.push(`${shown(members[index]!)} is in files:purgatory and in files:sweep_purgatory`);
      }
      return violations;
    },
  },
  {
    name: "files:swept_in_time",
    doc: "While a worker lives, nothing in files:purgatory is overdue by more than 900 s.",
    async check(ctx) {
      const { commands, topology } = ctx.redis;
      const now = ctx.clock.now();
      const alive = await commands.zcount(topology.key(jobKeys.workers()), now - WORKER_ALIVE, "+inf");
      if (alive === 0) return [];
      const late = await commands.zrangebyscore(
        topology.key(keys.purgatory()),
        "-inf",
        `(${now - LATE}`,
        "LIMIT",
        0,
        PAGE,
      );
      return late.map((member) => `files:purgatory holds ${shown(member)}, overdue by more than ${LATE} s`);
    },
  },
  {
    name: "files:recorded_files_are_unprotected",
    doc: "A row of s3_files that is older than 7200 s has no member in files:purgatory, unless its deletion is wanted.",
    async check(ctx) {
      const before = ctx.clock.now() - OLD_ROW;
      const violations: string[] = [];
      for await (const page of pages(ctx)) {
        const files = page.flatMap(({ member }) => {
          const parsed = faultOf(member) === undefined ? FileMember.safeParse(JSON.parse(member)) : undefined;
          return parsed?.success && !parsed.data.expected ? [parsed.data] : [];
        });
        if (files.length === 0) continue;
        const { rows } = await sql<{ uid: string; key: string }>`
          select s3_files.uid, s3_files.key from s3_files join unnest(
            ${files.map(({ bucket }) => bucket)}::text[], ${files.map(({ key }) => key)}::text[]
          ) as member (bucket, key) on member.bucket = s3_files.bucket and member.key = s3_files.key
          where s3_files.created_at < to_timestamp(${before}::float8)`.execute(ctx.sql.tables());
        for (const { uid, key } of rows)
          violations.push(`${uid} is long recorded, but files:purgatory still holds ${key}`);
      }
      return violations;
    },
  },
];
