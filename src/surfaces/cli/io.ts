/** The person or program at the other end of the command line. Commands write here and nowhere else. */
export interface Io {
  out(line?: string): void;
  err(line?: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly terminal: boolean;
  /** Calls back for each SIGINT, SIGTERM and SIGHUP until the returned function is called. */
  onSignal(listener: (signal: string) => void): () => void;
}

export function processIo(): Io {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  // `carillon jobs list | head` closes the pipe early: whoever reads has read enough.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  return {
    out: (line = "") => void process.stdout.write(`${line}\n`),
    err: (line = "") => void process.stderr.write(`${line}\n`),
    environment: process.env,
    workingDirectory: process.cwd(),
    terminal: process.stdout.isTTY === true,
    onSignal(listener) {
      for (const signal of signals) process.on(signal, listener);
      return () => {
        for (const signal of signals) process.off(signal, listener);
      };
    },
  };
}
