import { Command } from "commander";
import type { Context, ProgressEvent } from "../../jobs/index.ts";
import { newUid } from "../../kernel/ids.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

const LOOK_EVERY = 0.2;

export function jobsCommand(open: Open, io: Io): Command {
  const jobs = new Command("jobs")
    .summary("see what waits and runs, start a job, retry failed ones")
    .description(
      "The job queue. Workers run in `carillon up` and `carillon work`; these commands only speak to the queue.",
    );

  jobs
    .command("run <name> [kwargs]")
    .summary("queue a job now")
    .description(
      `Queues a job for the next free worker. The kwargs are JSON and are checked before anything is queued.
  carillon jobs run runners.example '{"message":"hello"}' --watch`,
    )
    .option("-d, --delay <seconds>", "not before this many seconds", Number)
    .option("-w, --watch", "follow its progress until it ends; exit code 1 when it fails")
    .action((name: string, kwargs: string | undefined, options: { delay?: number; watch?: boolean }) =>
      open(async (ctx) => {
        const jobUid = options.watch ? newUid("jp") : undefined;
        await ctx.jobs.enqueueNamed(name, parseKwargs(kwargs, io), { delay: options.delay, jobUid });
        io.out(`${name} is queued.`);
        if (jobUid && !(await watch(ctx, jobUid, io))) throw new CommandFailed();
      }),
    );

  return jobs;
}

function parseKwargs(text: string | undefined, io: Io): unknown {
  try {
    return JSON.parse(text ?? "{}");
  } catch (error) {
    io.err(`The kwargs are not JSON: ${(error as Error).message}. An example: '{"message":"hello"}'`);
    throw new CommandFailed();
  }
}

/** Prints what the job reports until it ends; answers whether it succeeded. */
async function watch(ctx: Context, jobUid: string, io: Io): Promise<boolean> {
  let seen = 0;
  let last: ProgressEvent | undefined;
  for (;;) {
    const report = await ctx.jobs.progress.read(jobUid, seen);
    for (const event of report?.events ?? []) {
      io.out(`  ${event.type.padEnd(9)}  ${event.message}${barOf(event)}`);
      last = event;
    }
    seen = report?.last_seq ?? seen;
    if (report?.done) return last?.type !== "failed";
    await ctx.clock.sleep(LOOK_EVERY);
  }
}

function barOf({ indicator }: ProgressEvent): string {
  return indicator?.type === "bar" ? ` (${indicator.at} of ${indicator.of})` : "";
}
