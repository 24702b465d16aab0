import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Command } from "commander";
import { systemClock } from "../../kernel/clock.ts";
import { exportSuppressedEmails, importSuppressedEmails } from "../../messaging/contacts/service.ts";
import { brandOf, exampleFiles } from "../../messaging/email_templates/service.ts";
import { loadSettings } from "../settings.ts";
import { version } from "../version.ts";
import { examineEmail } from "./email-check.ts";
import { compareSnapshots, writeSnapshots } from "./email-snapshots.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

const SHOWN = 100;

export function emailCommand(open: Open, io: Io): Command {
  const email = new Command("email")
    .summary("check that mails can be sent, review what they look like, move suppressed addresses")
    .description(
      `  carillon email check                  before the first mail to real people
  carillon email snapshot               after a change of a template: which mails look different now?
  carillon email suppressions export    all addresses that get no mail, as CSV`,
    );

  email
    .command("check")
    .summary("check settings, templates and providers of email, and say how to mend them")
    .description(
      `Checks the sender, the links for leaving, the postal address, every template with its examples, and whether each
configured provider answers. Sends nothing and changes nothing. Exit code 1 when something must be mended.`,
    )
    .action(async () => {
      const config = loadSettings(io.environment, io.workingDirectory);
      let failed = 0;
      for await (const { state, what, text, fix } of examineEmail(config, systemClock, `carillon/${version()}`)) {
        if (state === "fail") failed++;
        io.out(`${state.padEnd(4)}  ${what.padEnd(9)}  ${text}`);
        if (state !== "ok" && fix) io.out(`${" ".repeat(17)}→ ${fix}`);
      }
      io.out();
      io.out(failed === 0 ? "Mails can be sent." : `${failed} to mend.`);
      if (failed > 0) throw new CommandFailed();
    });

  email
    .command("snapshot")
    .summary("compare what every template's examples look like with the files that were reviewed")
    .description(
      `Renders the HTML and the text of every example and compares them with the files of a folder. Without --update
nothing is written, and a difference ends with exit code 1: let continuous integration run it. Open the HTML files
in a browser to see the mails.
  carillon email snapshot --update     accept what mails look like now; then commit the folder
  carillon email snapshot              fail if a mail looks different from what was committed`,
    )
    .option("-f, --folder <path>", "where the reviewed files are", "email-snapshots")
    .option("-u, --update", "write the files as they are now")
    .action(({ folder, update }: { folder: string; update?: boolean }) => {
      const config = loadSettings(io.environment, io.workingDirectory);
      const place = resolve(io.workingDirectory, folder);
      const rendered = exampleFiles(brandOf(config));
      const { added, changed, gone } = compareSnapshots(place, rendered);
      for (const file of added) io.out(`new      ${file}`);
      for (const file of gone) io.out(`gone     ${file}`);
      for (const { file, line, was, is } of changed) {
        io.out(`changed  ${file}, line ${line}`);
        io.out(`         - ${was.slice(0, SHOWN)}`);
        io.out(`         + ${is.slice(0, SHOWN)}`);
      }
      const differences = added.length + changed.length + gone.length;
      if (differences === 0) return io.out(`${rendered.size} files look as they were reviewed.`);
      if (update) {
        writeSnapshots(place, rendered, gone);
        return io.out(`${differences} files were written to ${folder}. Look at them, then commit them.`);
      }
      io.out(`${differences} files differ. Accept them with: carillon email snapshot --folder ${folder} --update`);
      throw new CommandFailed();
    });

  email.addCommand(suppressionsCommand(open, io));
  return email;
}

function suppressionsCommand(open: Open, io: Io): Command {
  const suppressions = new Command("suppressions")
    .summary("take suppressed addresses along: export and import them as CSV")
    .description(
      `Addresses that bounced, complained or unsubscribed get no mail. Take them along when you come from another system:
  carillon email suppressions export > suppressed.csv
  carillon email suppressions import suppressed.csv --dry-run
The first line names the columns: email, and if you like reason (User, Bounce, Complaint, Admin), scope (all, lists) and note.`,
    );
  suppressions
    .command("export")
    .summary("print all suppressed addresses as CSV")
    .action(() =>
      open(async (ctx) => {
        for await (const part of exportSuppressedEmails(ctx)) io.out(part.replace(/\r\n$/, "\r"));
      }),
    );
  suppressions
    .command("import <file>")
    .summary("suppress the addresses of a CSV file")
    .option("-n, --dry-run", "only say which lines make no sense")
    .action((file: string, { dryRun }: { dryRun?: boolean }) =>
      open(async (ctx) => {
        const text = readFileSync(resolve(io.workingDirectory, file), "utf8");
        const report = await importSuppressedEmails(ctx, text, { dryRun });
        for (const { line, reason } of report.faults) io.err(`line ${line}: ${reason}`);
        if (report.refused > report.faults.length) io.err(`and ${report.refused - report.faults.length} more`);
        if (dryRun) io.out(`${report.refused} lines make no sense; nothing was written.`);
        else io.out(`${report.created} are new, ${report.strengthened} stronger, ${report.kept} were known already.`);
        if (report.refused > 0) throw new CommandFailed();
      }),
    );
  return suppressions;
}
