import { CarillonError, kernelErrors } from "../../kernel/errors.ts";
import type { Io } from "./io.ts";

/** The exit codes of the command line; those above 1 are the ones that sysexits.h names. */
export const EXIT = { ok: 0, failure: 1, usage: 64, unavailable: 69, configuration: 78 } as const;

/** Ends a command with a code after it has said why itself. */
export class CommandFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number = EXIT.failure) {
    super("the command has failed");
    this.exitCode = exitCode;
  }
}

const BAD_SETTINGS = new Set([kernelErrors.invalid_settings.code, "root_secret_required", "invalid_schedule"]);

/** Says what went wrong and what to do about it; answers the exit code. */
export function explainFailure(error: unknown, io: Io): number {
  if (error instanceof CommandFailed) return error.exitCode;
  if (!(error instanceof CarillonError)) {
    io.err(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return EXIT.failure;
  }
  io.err(error.message);
  if (error.hint) io.err(error.hint);
  if (BAD_SETTINGS.has(error.code)) return EXIT.configuration;
  return error.status === 503 ? EXIT.unavailable : EXIT.failure;
}
