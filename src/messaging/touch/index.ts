import { domain } from "../../domain.ts";
import { checkTimes } from "./constraints.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { stats } from "./stats.ts";
import { migrations } from "./tables.ts";

/** Touches: an application names a person and an event, and this room finds the address and the words. */
export const touch = domain({
  name: "touch",
  keys: [keys],
  settings,
  errors,
  migrations,
  stats,
  runners,
  recurring,
  routes,
  invariants,
  async start(ctx) {
    checkTimes(ctx);
    return async () => {};
  },
  // Rows go with the user by cascade; a touch that waits finds nobody and fails.
  onUserDeleting: async () => {},
});
