/**
 * Telling people that something is wrong. Neither call throws, and neither waits: an alert must never be the reason
 * that a job fails or is slow. `mechanisms/alerts` has the implementation that keeps and forwards them.
 */
export interface Alerts {
  /** Something unexpected that the system handled; `identifier` groups repeats, such as `files:in_use`. */
  warning(identifier: string, text: string, options?: { urgent?: boolean }): void;
  /** An error that somebody must look at. */
  error(error: unknown, extra?: string): void;
  /** News for operators, such as an instance that became ready. */
  ops(text: string): void;
}

export interface RecordedAlert {
  readonly level: "warning" | "urgent" | "error" | "ops";
  readonly identifier: string;
  readonly text: string;
}

/** Collects alerts in memory, for tests and for commands that print them at the end. */
export class AlertRecorder implements Alerts {
  readonly recorded: RecordedAlert[] = [];

  warning(identifier: string, text: string, options: { urgent?: boolean } = {}): void {
    this.recorded.push({ level: options.urgent ? "urgent" : "warning", identifier, text });
  }

  error(error: unknown, extra?: string): void {
    const text = error instanceof Error ? error.message : String(error);
    this.recorded.push({ level: "error", identifier: "error", text: extra ? `${text} (${extra})` : text });
  }

  ops(text: string): void {
    this.recorded.push({ level: "ops", identifier: "ops", text });
  }

  identifiers(): string[] {
    return this.recorded.map((alert) => alert.identifier);
  }
}
