import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { forgetUserKeys } from "./jobs.ts";
import { routes } from "./routes.ts";
import type { UserHooks } from "./service.ts";
import { migrations } from "./tables.ts";

/** The people. `hooks` gives the whole floor plan, asked for only when a user comes or goes. */
export function usersDomain(hooks: () => UserHooks) {
  return domain({
    name: "users",
    errors,
    migrations,
    runners: [forgetUserKeys],
    routes: routes(hooks),
  });
}
