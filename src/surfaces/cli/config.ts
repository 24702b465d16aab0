import { Command } from "commander";
import { masked, shownSetting } from "../../kernel/config.ts";
import { loadSettings } from "../settings.ts";
import type { Io } from "./io.ts";

export function configCommand(io: Io): Command {
  return new Command("config")
    .summary("show every setting: value, source, meaning")
    .description(
      `Shows the settings that a process started here would have, and where each comes from: the environment, the .env
file of the working directory, or the default. Secrets are masked. A bad value is named, with exit code 78.`,
    )
    .argument("[filter]", "only settings whose name, variable or meaning contains this")
    .option("--json", "as JSON, for programs")
    .option("--set", "only those that differ from their default")
    .action((filter: string | undefined, options: { json?: boolean; set?: boolean }) => {
      const shown = loadSettings(io.environment, io.workingDirectory)
        .effective.filter((entry) => !options.set || entry.source !== "default")
        .filter(({ setting }) => !filter || `${setting.name} ${setting.env} ${setting.doc}`.includes(filter));
      if (options.json) {
        io.out(JSON.stringify(shown.map(shownSetting), undefined, 2));
        return;
      }
      for (const entry of shown) {
        const { env, unit, doc } = entry.setting;
        io.out(`${env} = ${readable(masked(entry))}${unit ? ` ${unit}` : ""}  (${entry.source})`);
        io.out(`    ${doc}`);
      }
    });
}

function readable(value: unknown): string {
  if (value === undefined) return "(not set)";
  if (Array.isArray(value)) return value.length === 0 ? "(empty)" : value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
