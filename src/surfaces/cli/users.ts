import { Command, Option } from "commander";
import { domains } from "../../domains.ts";
import { createUser, listUsers, ROLES, type Role, updateUser } from "../../people/users/service.ts";
import { columns, readableTime } from "./columns.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

export function usersCommand(open: Open, io: Io): Command {
  const users = new Command("users")
    .summary("create users, list them, change their roles")
    .description("The people of this installation. `carillon users role <sub> admin` makes the first administrator.");
  const role = () => new Option("-r, --role <role>", "what the user may do").choices([...ROLES]);

  users
    .command("create")
    .summary("make a user and print its sub")
    .option("-s, --sub <sub>", "its name to the outside; made up unless given")
    .option("-z, --timezone <name>", "an IANA timezone, such as Europe/Berlin")
    .addOption(role().default("user"))
    .action((options: { sub?: string; timezone?: string; role: Role }) =>
      open(async (ctx) => {
        const user = await createUser(ctx, domains, options);
        io.out(user.sub);
      }),
    );

  users
    .command("list")
    .summary("list users in order of arrival")
    .option("-a, --after <uuid>", "continue after this user")
    .option("-n, --limit <count>", "how many", "50")
    .addOption(role())
    .action((options: { after?: string; limit: string; role?: Role }) =>
      open(async (ctx) => {
        const page = await listUsers(ctx, {
          ...options,
          limit: Math.min(1000, Math.max(1, Number(options.limit) || 50)),
        });
        if (page.users.length === 0) io.out("There are no such users.");
        else
          for (const line of columns([
            ["SUB", "ROLE", "TIMEZONE", "CREATED", "UUID"],
            ...page.users.map((user) => [
              user.sub,
              user.role,
              user.timezone ?? "-",
              readableTime(user.created_at),
              user.uuid,
            ]),
          ]))
            io.out(line);
        if (page.next) io.out(`There are more: --after ${page.next}`);
      }),
    );

  users
    .command("role <sub> <role>")
    .summary(`change a user's role: ${ROLES.join(", ")}; tokens issued before end`)
    .action((sub: string, wanted: string) =>
      open(async (ctx) => {
        if (!ROLES.includes(wanted as Role)) users.error(`${wanted} is not a role; roles are ${ROLES.join(", ")}`);
        const user = await updateUser(ctx, sub, { role: wanted as Role });
        io.out(`${user.sub} is now ${user.role}.`);
      }),
    );

  return users;
}
