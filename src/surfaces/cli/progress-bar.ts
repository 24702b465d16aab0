import type { Clock } from "../../kernel/clock.ts";

/** The part of a stream that a progress bar needs. */
export interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const WIDTH = 30;
const SECONDS_BETWEEN = 0.1;

/** One line that is rewritten as work goes on; silent where nobody watches. */
export function progressBar(terminal: Terminal, clock: Pick<Clock, "monotonic">) {
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(done: number, total: number): void {
      const now = clock.monotonic();
      if (!terminal.isTTY || (now - shownAt < SECONDS_BETWEEN && done < total)) return;
      shownAt = now;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const bar = "█".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, "░");
      const counts = `${done.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}`;
      terminal.write(`\r${bar} ${Math.floor(share * 100)} %  ${counts}\u001b[K`);
    },
    /** Takes the line away again. */
    end(): void {
      if (terminal.isTTY) terminal.write("\r\u001b[K");
    },
  };
}
