import type { Context, ProgressEvent } from "../../jobs/index.ts";
import type { Io } from "./io.ts";

const LOOK_EVERY = 0.2;

/** Prints what a job reports until it ends or the signal comes. */
export async function followJob(
  ctx: Context,
  jobUid: string,
  io: Io,
  signal: AbortSignal,
): Promise<"succeeded" | "failed" | "left"> {
  let seen = 0;
  let last: ProgressEvent | undefined;
  do {
    const report = await ctx.jobs.progress.read(jobUid, seen);
    for (const event of report?.events ?? []) {
      io.out(`  ${event.type.padEnd(9)}  ${event.message}${barOf(event)}`);
      last = event;
    }
    seen = report?.last_seq ?? seen;
    if (report?.done) return last?.type === "failed" ? "failed" : "succeeded";
  } while (await ctx.clock.sleep(LOOK_EVERY, signal));
  return "left";
}

function barOf({ indicator }: ProgressEvent): string {
  return indicator?.type === "bar" ? ` (${indicator.at} of ${indicator.of})` : "";
}
