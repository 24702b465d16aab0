import { Command, InvalidArgumentError } from "commander";
import { readFailed, readQueues, readRecurring, readWorkers, requeueFailed } from "../../jobs/admin.ts";
import type { Context } from "../../jobs/index.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Furnished } from "../house.ts";
import { columns, readableTime } from "./columns.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import { followJob } from "./job-progress.ts";
import type { Open } from "./open.ts";

const LOOK_EVERY = 1;
const CLEAR_SCREEN = "\x1b[2J\x1b[H";
const LISTED_FAILURES = 20;

const LONGEST_DELAY = 31_536_000;

export function jobsCommand(open: Open, io: Io): Command {
  const jobs = new Command("jobs")
    .summary("see what waits and runs, start a job, retry failed ones")
    .description(
      "The job queue. Workers run in `carillon up` and `carillon work`; these commands only speak to the queue.",
    );

  jobs
    .command("list")
    .summary("show queues, workers, recurring jobs and failures")
    .option("--json", "as JSON, for programs")
    .action(({ json }: { json?: boolean }) =>
      open(async (_, furnished) => {
        const seen = await look(furnished);
        if (json) io.out(JSON.stringify(seen, undefined, 2));
        else for (const line of overview(seen, furnished.ctx)) io.out(line);
      }),
    );

  jobs
    .command("watch")
    .summary("the same, again every second until Ctrl-C")
    .argument("[progress-uid]", "follow one job instead, by the uid its enqueuer was given")
    .action((jobUid: string | undefined) =>
      open(async (ctx, furnished) => {
        const leaving = new AbortController();
        const deaf = io.onSignal(() => leaving.abort());
        try {
          if (jobUid) await followOrFail(ctx, jobUid, io, leaving.signal);
          else
            do {
              const lines = overview(await look(furnished), ctx);
              io.out(io.terminal ? `${CLEAR_SCREEN}${lines.join("\n")}` : lines.join("\n"));
            } while (await ctx.clock.sleep(LOOK_EVERY, leaving.signal));
        } finally {
          deaf();
        }
      }),
    );

  jobs
    .command("runners")
    .summary("list every job that can be run, with its meaning")
    .action(() =>
      open(async (ctx) => {
        const known = [...ctx.jobs.runners.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
        for (const line of columns(known.map(({ name, doc }) => [name, doc]))) io.out(line);
      }),
    );

  jobs
    .command("run <name> [kwargs]")
    .summary("queue a job now")
    .description(
      `Queues a job for the next free worker. The kwargs are JSON and are checked before anything is queued.
  carillon jobs run runners.example '{"message":"hello"}' --watch`,
    )
    .option("-d, --delay <seconds>", "not before this many seconds", delayOf)
    .option("-w, --watch", "follow its progress until it ends; exit code 1 when it fails")
    .action((name: string, kwargs: string | undefined, options: { delay?: number; watch?: boolean }) =>
      open(async (ctx) => {
        const jobUid = options.watch ? newUid("jp") : undefined;
        await ctx.jobs.enqueueNamed(name, parseKwargs(kwargs, io), { delay: options.delay, jobUid });
        io.out(`${name} is queued.`);
        if (!jobUid) return;
        const leaving = new AbortController();
        const deaf = io.onSignal(() => leaving.abort());
        await followOrFail(ctx, jobUid, io, leaving.signal).finally(deaf);
      }),
    );

  jobs
    .command("failed")
    .summary("list failed jobs, newest first, with the reason")
    .option("-n, --limit <count>", "how many", "50")
    .option("--json", "as JSON, for programs")
    .action(({ limit, json }: { limit: string; json?: boolean }) =>
      open(async (ctx) => {
        const items = await readFailed(ctx, { limit: Math.max(1, Number(limit) || 50), offset: 0 });
        if (json) io.out(JSON.stringify(items, undefined, 2));
        else if (items.length === 0) io.out("No job has failed.");
        else for (const line of failures(items)) io.out(line);
      }),
    );

  jobs
    .command("retry [id]")
    .summary("give a failed job another chance, or all of them with --all")
    .option("-a, --all", "every failed job")
    .action((id: string | undefined, { all }: { all?: boolean }) => {
      if (Boolean(id) === Boolean(all))
        jobs.error("Say which: the id of one failed job (carillon jobs failed), or --all.");
      return open(async (ctx) => {
        const count = await requeueFailed(ctx, id);
        io.out(count === 1 ? "1 job waits again." : `${count} jobs wait again.`);
      });
    });

  return jobs;
}

async function look({ ctx, jobs }: Furnished) {
  const [queues, workers, recurring, failures] = await Promise.all([
    readQueues(ctx),
    readWorkers(ctx),
    readRecurring(ctx, jobs),
    readFailed(ctx, { limit: LISTED_FAILURES, offset: 0 }),
  ]);
  return { ...queues, workers, recurring, failures };
}

function overview(seen: Awaited<ReturnType<typeof look>>, ctx: Context): string[] {
  const now = ctx.clock.now();
  const ago = (time: number | null) => (time === null ? "-" : `${Math.max(0, now - time).toFixed(1)} s ago`);
  const lines = [
    ...columns([
      ["QUEUE", "WAITING", "OLDEST"],
      ...seen.queues.map(({ key, length, oldest_queued_at }) => [key, String(length), ago(oldest_queued_at)]),
      ["jobs:delayed", String(seen.delayed), "-"],
      ["jobs:failed", String(seen.failed), "-"],
    ]),
    "",
  ];
  if (seen.workers.length === 0) lines.push("No worker runs. Start one with: carillon up, or carillon work");
  else
    lines.push(
      ...columns([
        ["WORKER", "CATEGORIES", "HEARTBEAT", "RUNNING"],
        ...seen.workers.map((worker) => [
          `${worker.host}`,
          worker.categories,
          ago(worker.last_beat_at),
          worker.running.map(({ name }) => name).join(", ") || "-",
        ]),
      ]),
    );
  if (seen.recurring.items.length > 0)
    lines.push(
      "",
      ...columns([
        ["RECURRING", "NEXT RUN", ""],
        ...[...seen.recurring.items]
          .sort((a, b) => (a.next_run_at ?? 0) - (b.next_run_at ?? 0))
          .map((job) => [
            job.name,
            readableTime(job.next_run_at),
            job.overdue_by > 1 ? `overdue by ${job.overdue_by.toFixed(0)} s` : "",
          ]),
      ]),
    );
  if (seen.failures.length > 0) lines.push("", ...failures(seen.failures));
  lines.push("", `${ctx.jobs.runners.size} runners are known: carillon jobs runners lists them.`);
  return lines;
}

function failures(items: Awaited<ReturnType<typeof readFailed>>): string[] {
  return columns([
    ["FAILED", "WHEN", "REASON", "ERROR"],
    ...items.map(({ id, failed_at, reason, error }) => [id, readableTime(failed_at), reason, error.split("\n")[0]!]),
  ]);
}

function parseKwargs(text: string | undefined, io: Io): unknown {
  try {
    return JSON.parse(text ?? "{}");
  } catch (error) {
    io.err(`The kwargs are not JSON: ${(error as Error).message}. An example: '{"message":"hello"}'`);
    throw new CommandFailed();
  }
}

async function followOrFail(ctx: Context, jobUid: string, io: Io, signal: AbortSignal): Promise<void> {
  if ((await followJob(ctx, jobUid, io, signal)) === "failed") throw new CommandFailed();
}

function delayOf(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== "" && seconds >= 0 && seconds <= LONGEST_DELAY) return seconds;
  throw new InvalidArgumentError(`It is a number of seconds from 0 to ${LONGEST_DELAY}.`);
}
