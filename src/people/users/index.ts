import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import type { UserHooks } from "./service.ts";
import { migrations } from "./tables.ts";

/** The people. `hooks` gives the whole floor plan, asked for only when a user comes or goes. */
export function usersDomain(hooks: () => UserHooks) {
  return domain({
    name: "users",
    keys: [keys],
    errors,
    migrations,
    runners,
    recurring,
    routes: routes(hooks),
    invariants,
  });
}
