import { Command } from "commander";
import { systemClock } from "../../kernel/clock.ts";
import { migrate, pendingMigrations } from "../../kernel/sql/index.ts";
import { openDatabase, prepareDataFolder } from "../foundation.ts";
import { migrationPlan } from "../house.ts";
import { loadSettings } from "../settings.ts";
import { columns } from "./columns.ts";
import type { Io } from "./io.ts";

export function migrateCommand(io: Io): Command {
  return new Command("migrate")
    .summary("bring the tables up to date")
    .description(
      `Applies what is missing, in one transaction, and says what it did. \`up\`, \`serve\` and \`work\` do this at their
start; run it by hand before a rolling update, or with --dry-run to see what an update would do.`,
    )
    .option("-n, --dry-run", "only list what would be applied")
    .action(async ({ dryRun }: { dryRun?: boolean }) => {
      const config = loadSettings(io.environment, io.workingDirectory);
      prepareDataFolder(config);
      const database = await openDatabase(config, systemClock);
      try {
        const steps = await (dryRun ? pendingMigrations : migrate)(database.sql, migrationPlan());
        if (steps.length === 0) io.out("The tables are up to date.");
        else {
          io.out(dryRun ? `${steps.length} steps would be applied:` : `${steps.length} steps were applied:`);
          for (const line of columns(
            steps.map(({ domain, number, name }) => [domain, String(number), name]),
            "  ",
          ))
            io.out(line);
        }
      } finally {
        await database.close();
      }
    });
}
