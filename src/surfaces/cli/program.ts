import { Command } from "commander";
import { version } from "../version.ts";
import { adminCommand } from "./admin.ts";
import { configCommand } from "./config.ts";
import { demoCommand } from "./demo.ts";
import { doctorCommand } from "./doctor.ts";
import { emailCommand } from "./email.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import { jobsCommand } from "./jobs.ts";
import { keysCommand } from "./keys.ts";
import { migrateCommand } from "./migrate.ts";
import { opener, openKeyspace } from "./open.ts";
import { locksCommand, quarantineCommand } from "./repair.ts";
import { runCommands } from "./run.ts";
import { traceCommand } from "./trace.ts";
import { usersCommand } from "./users.ts";

const INTRODUCTION = `The four commands to know:
  carillon up             run everything here; Ctrl-C stops it
  carillon admin login    print a link to the dashboard
  carillon admin token    make a credential for the API
  carillon doctor         find out what is wrong, and how to fix it
`;

const EPILOGUE = `
carillon <command> --help explains each. Settings come from the environment and from .env: carillon config lists them.`;

export function program(io: Io): Command {
  const open = opener(io);
  const carillon = new Command("carillon")
    .description("The self-hosted backend for apps that meet people every day.")
    .version(version(), "-v, --version", "print the version")
    .addHelpText("beforeAll", ({ command }) => (command.name() === "carillon" ? INTRODUCTION : ""))
    .addHelpText("after", EPILOGUE);
  for (const command of [
    ...runCommands(io),
    adminCommand(open, io),
    jobsCommand(open, io),
    locksCommand(open, io),
    quarantineCommand(open, io),
    usersCommand(open, io),
    emailCommand(open, io),
    traceCommand(open, io),
    demoCommand(open, io),
    keysCommand(openKeyspace(io), {
      print: io.out,
      exit: (status) => {
        throw new CommandFailed(status);
      },
    }),
    configCommand(io),
    doctorCommand(io),
    migrateCommand(io),
  ])
    carillon.addCommand(command);
  return speakThrough(carillon, io);
}

/** Help and complaints of every command go through the same door as everything else, and end with an exception. */
function speakThrough(command: Command, io: Io): Command {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => io.out(text.replace(/\n$/, "")),
    writeErr: (text) => io.err(text.replace(/\n$/, "")),
  });
  command.showSuggestionAfterError();
  for (const inner of command.commands) speakThrough(inner, io);
  return command;
}
