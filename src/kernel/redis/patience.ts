import type { Command, Redis } from "ioredis";
import { systemClock } from "../clock.ts";

interface Watched {
  readonly command: Command & { readonly isSettled: boolean };
  readonly since: number;
}

/** Answered commands are cut off the front of the line in pieces of this size. */
const PIECE = 1024;

/**
 * Rejects commands that were not answered in time, and sees to it that they are not sent later, after their caller gave
 * up: a release or a push from before a long outage.
 *
 * One timer watches the oldest unanswered command. The client's own `commandTimeout` sets and clears a timer for each,
 * which costs a busy connection more than encoding the command does.
 */
export function limitPatience(client: Redis, seconds: number): void {
  let line: Watched[] = [];
  let oldest = 0;
  let watching: AbortController | undefined;
  const waitingForConnection = new WeakSet<Command>();
  const send = client.sendCommand.bind(client);

  const forgetAnswered = () => {
    while (oldest < line.length && line[oldest]!.command.isSettled) oldest += 1;
    if (oldest < PIECE && oldest < line.length) return;
    line = line.slice(oldest);
    oldest = 0;
  };

  const watch = async () => {
    watching = new AbortController();
    const { signal } = watching;
    for (forgetAnswered(); line.length > 0; forgetAnswered()) {
      const left = line[oldest]!.since + seconds - systemClock.monotonic();
      if (left <= 0) line[oldest]!.command.reject(new Error("Command timed out"));
      else if (!(await systemClock.sleep(left, signal))) break;
    }
    watching = undefined;
  };

  client.sendCommand = ((command: Watched["command"], stream?: never) => {
    if (waitingForConnection.has(command)) {
      if (command.isSettled) return command.promise;
    } else {
      forgetAnswered();
      line.push({ command, since: systemClock.monotonic() });
      if (!watching) void watch();
    }
    if (client.status !== "ready") waitingForConnection.add(command);
    return send(command, stream);
  }) as Redis["sendCommand"];
  client.on("end", () => watching?.abort());
}
