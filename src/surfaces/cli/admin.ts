import { Command, InvalidArgumentError } from "commander";
import {
  createAdminToken,
  errors,
  issueSignInLink,
  listAdminTokens,
  listSessions,
  mintAccessToken,
  revokeAdminToken,
  revokeSession,
} from "../../infrastructure/access/service.ts";
import { columns, readableTime } from "./columns.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

const PAGE = 200;

export function adminCommand(open: Open, io: Io): Command {
  const admin = new Command("admin").summary("make, list and revoke credentials").description(
    `Credentials for people and programs that administer this installation. They work at once, also while Carillon
runs. Who may run this command may already read the data folder, so it asks for nothing.`,
  );

  admin
    .command("login")
    .summary("print a link that signs a browser in to the dashboard, once")
    .description(
      `Prints a link on standard output. Whoever opens it first is signed in to the dashboard; then it works no more.
Nobody who opens it late gets in either: CARILLON_ACCESS_SIGN_IN_LINK_LIFETIME says how long it works.`,
    )
    .option("-l, --label <text>", "who it is for, to recognise the browser in lists", "command line")
    .action(({ label }: { label: string }) =>
      open(async (ctx) => {
        const link = await issueSignInLink(ctx, { label });
        io.out(link.url);
        io.err(`It works once, until ${readableTime(link.expiresAt)}.`);
      }),
    );

  admin
    .command("token")
    .summary("make an admin token and print it, once")
    .description(
      `Prints a new admin token on standard output; it is kept only as a hash and cannot be shown again.
  curl -H "Authorization: Bearer $(carillon admin token --label curl)" http://127.0.0.1:8787/api/1/admin/jobs/queues`,
    )
    .option("-l, --label <text>", "what it is for, to recognise it in lists", "command line")
    .action(({ label }: { label: string }) =>
      open(async (ctx) => {
        const made = await createAdminToken(ctx, { label });
        io.out(made.token);
        io.err(`Admin token ${made.uid} "${label}". Revoke it with: carillon admin revoke ${made.uid}`);
      }),
    );

  admin
    .command("tokens")
    .summary("list admin tokens, newest first")
    .option("--json", "as JSON, for programs")
    .action(({ json }: { json?: boolean }) =>
      open(async (ctx) => {
        const { tokens } = await listAdminTokens(ctx, { limit: PAGE });
        if (json) io.out(JSON.stringify(tokens, undefined, 2));
        else if (tokens.length === 0)
          io.out("There are no admin tokens yet. Make one with: carillon admin token --label me");
        else
          for (const line of columns([
            ["ID", "LABEL", "CREATED", "LAST USED", "STATE"],
            ...tokens.map((token) => [
              token.uid,
              token.label,
              readableTime(token.created_at),
              readableTime(token.last_used_at),
              token.revoked_at === null ? "works" : `revoked ${readableTime(token.revoked_at)}`,
            ]),
          ]))
            io.out(line);
      }),
    );

  admin
    .command("sessions")
    .summary("list browsers that are signed in to the dashboard, newest first")
    .option("--json", "as JSON, for programs")
    .action(({ json }: { json?: boolean }) =>
      open(async (ctx) => {
        const sessions = await listSessions(ctx);
        if (json) io.out(JSON.stringify(sessions, undefined, 2));
        else if (sessions.length === 0)
          io.out("Nobody is signed in. Print a link to sign in with: carillon admin login");
        else
          for (const line of columns([
            ["ID", "LABEL", "SIGNED IN", "LAST USED", "FROM"],
            ...sessions.map((session) => [
              session.uid,
              session.label,
              readableTime(session.created_at),
              readableTime(session.last_used_at),
              session.address,
            ]),
          ]))
            io.out(line);
      }),
    );

  admin
    .command("revoke <id>")
    .summary("end an admin token, within ten seconds everywhere, or sign a browser out, at once")
    .action((uid: string) =>
      open(async (ctx) => {
        if (!uid.startsWith("crl_ses_")) await revokeAdminToken(ctx, uid);
        else if (!(await revokeSession(ctx, uid))) throw errors.session_not_found();
        io.out(`${uid} works no more.`);
      }),
    );

  admin
    .command("access-token <sub>")
    .summary("make an access token of a user, to call the API in their name")
    .description("Prints an access token on standard output. The user must exist: carillon users list.")
    .option("-e, --expires-in <seconds>", "how long it works", seconds, 3600)
    .action((sub: string, { expiresIn }: { expiresIn: number }) =>
      open(async (ctx) => {
        const made = await mintAccessToken(ctx, sub, expiresIn);
        if (!made) {
          io.err(
            `There is no user ${sub}. \`carillon users list\` shows who there is; \`carillon users create\` makes one.`,
          );
          throw new CommandFailed();
        }
        io.out(made.token);
        io.err(`It works until ${readableTime(made.expiresAt)}.`);
      }),
    );

  return admin;
}

function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 31_536_000)
    throw new InvalidArgumentError("It must be a whole number of seconds, at most a year.");
  return value;
}
