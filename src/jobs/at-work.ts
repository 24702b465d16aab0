import { readWorkers } from "./admin.ts";
import type { Context } from "./context.ts";
import { type JobEntry, parseEntry } from "./entry.ts";
import { jobKeys } from "./keys.ts";

/** What operators see of single jobs: those that workers hold now, and those that wait for their time. */

export interface HeldJob extends Pick<JobEntry, "name" | "kwargs" | "queued_at"> {
  readonly worker_uid: string;
  readonly host: string;
  /** When it began; null while it waits for a slot of its worker. */
  readonly since: number | null;
  readonly recurring: boolean;
  readonly deliveries: number;
  /** Under this uid it tells of its progress, if somebody asked for that. */
  readonly job_uid: string | null;
}

export interface DelayedJob extends Pick<JobEntry, "name" | "kwargs" | "queued_at"> {
  readonly due_at: number;
  readonly attempt: number;
}

/** The longest-running first; at most `limit`. */
export async function readHeld(ctx: Pick<Context, "redis">, limit: number): Promise<HeldJob[]> {
  const { commands, topology } = ctx.redis;
  const workers = await readWorkers(ctx);
  const held = await Promise.all(
    workers.map(async ({ uid, host, running }) => {
      const names = topology.copies(jobKeys.running({ worker_uid: uid }));
      const raws = (await Promise.all(names.map((name) => commands.hvals(name)))).flat();
      const begun = [...running];
      return raws.flatMap((raw): HeldJob[] => {
        const parsed = parseEntry(raw);
        if (!parsed.ok) return [];
        const { name, kwargs, queued_at, rjob, deliveries, job_uid } = parsed.job;
        const at = begun.findIndex((each) => each.name === name);
        const [own] = at < 0 ? [] : begun.splice(at, 1);
        return [
          {
            name,
            kwargs,
            queued_at,
            worker_uid: uid,
            host,
            since: own?.since ?? null,
            recurring: rjob !== undefined,
            deliveries: deliveries ?? 0,
            job_uid: job_uid ?? null,
          },
        ];
      });
    }),
  );
  const age = ({ since }: HeldJob) => since ?? Number.POSITIVE_INFINITY;
  return held
    .flat()
    .sort((one, other) => age(one) - age(other))
    .slice(0, limit);
}

/** Those that are due first. */
export async function readDelayed(
  ctx: Pick<Context, "redis">,
  page: { readonly limit: number; readonly offset: number },
): Promise<DelayedJob[]> {
  const { commands, topology } = ctx.redis;
  const raws = await commands.zrange(
    topology.key(jobKeys.delayed()),
    String(page.offset),
    String(page.offset + page.limit - 1),
    "WITHSCORES",
  );
  return raws.flatMap((raw, index): DelayedJob[] => {
    if (index % 2 === 1) return [];
    const parsed = parseEntry(raw);
    if (!parsed.ok) return [];
    const { name, kwargs, queued_at, attempt } = parsed.job;
    return [{ name, kwargs, queued_at, due_at: Number(raws[index + 1]), attempt: attempt ?? 0 }];
  });
}
