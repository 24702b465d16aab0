import { Command, InvalidArgumentError } from "commander";
import { systemClock } from "../../kernel/clock.ts";
import { MOST_PEOPLE } from "../demo/cast.ts";
import { fillHistory, type HistoryReport } from "../demo/history.ts";
import { columns } from "./columns.ts";
import { CommandFailed, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";
import { progressBar } from "./progress-bar.ts";

const MOST_DAYS = 90;

export function demoCommand(open: Open, io: Io): Command {
  return new Command("demo")
    .summary("fill the past of the demo, so that charts have something to show")
    .description(
      `Lets the people of the demo live through the latest days: on a clock that skips from one due moment to the next, with
the real jobs and routes and with simulated providers. Reminders come at everybody's own hour, links are followed, a
campaign goes out, one provider has a bad day. It ends today.

On an empty database it makes the demo's app first. Days that are there already are left alone, so a second run changes
nothing. It runs alone: stop Carillon first, and start it again afterwards. It refuses to run with real providers, and on
a database that holds other people than those of the demo.

  carillon demo --days 30
  CARILLON_DATA_DIR=/tmp/try carillon demo --days 7 --people 20    (a house of its own, to throw away)`,
    )
    .option("-d, --days <count>", "how many days, today included", between(1, MOST_DAYS), 30)
    .option(
      "-p, --people <count>",
      "how many people to begin with, on an empty database",
      between(1, MOST_PEOPLE / 2),
      60,
    )
    .option("-s, --seed <number>", "what chance follows from", between(0, 4_294_967_295), 1)
    .action((options: { days: number; people: number; seed: number }) =>
      open(async (ctx) => {
        const bar = progressBar(process.stderr, systemClock);
        if (io.terminal) io.err("Living through the days, hour by hour:");
        const stopping = new AbortController();
        // The first Ctrl-C lets the day end and come to rest; the second does not wait, and leaves the rest to the next run.
        const deaf = io.onSignal(() => (stopping.signal.aborted ? process.exit(EXIT.failure) : stopping.abort()));
        const report = await fillHistory(ctx, {
          ...options,
          signal: stopping.signal,
          progress: (done, total) => bar.show(done, total),
        }).finally(() => bar.end());
        deaf();
        for (const line of told(report, stopping.signal.aborted)) io.out(line);
        if (report.failures.length === 0) return;
        for (const { job, error } of report.failures.slice(0, 5)) io.err(`${job}: ${String(error)}`);
        throw new CommandFailed();
      }),
    );
}

function told(report: HistoryReport, isStopped: boolean): readonly string[] {
  const lines: string[] = [];
  const goOn = "Stopped early. The days that are missing are filled in by the next run.";
  if (report.created > 0) lines.push(`Made the demo's app with ${report.created} people.`);
  if (report.alreadyThere > 0)
    lines.push(`${report.alreadyThere} days have a history already and are left as they are.`);
  if (report.lived.length === 0) return [...lines, isStopped ? goOn : "Nothing was left to fill in."];
  if (report.wentOnFrom) lines.push(`Went on from ${report.wentOnFrom}, where an earlier run had ended abruptly.`);
  const number = (value: number) => value.toLocaleString("en-US");
  for (const { from, to, days } of report.lived)
    lines.push(`Lived through ${days === 1 ? from : `${days} days, ${from} to ${to}`}.`);
  const messages = report.messages.map(({ channel, outcome, count }) => [channel, outcome, number(count)]);
  const deeds = Object.entries(report.done).map(([what, times]) => ["people", what, number(times)]);
  lines.push("", ...columns([...messages, ...deeds], "  "), "");
  lines.push(`${report.people} people, ${number(report.runs)} runs of jobs, ${report.seconds.toFixed(0)} s.`);
  return [...lines, ...(isStopped ? [goOn] : []), "See it on the dashboard: carillon up"];
}

function between(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };
}
