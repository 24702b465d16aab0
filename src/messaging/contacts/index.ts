import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { onUserDeleting, onUserMerging } from "./hooks.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { contactMethodStats } from "./stats.ts";
import { migrations } from "./tables.ts";

/** How people can be reached, and which addresses must not be used. */
export const contacts = domain({
  name: "contacts",
  keys: [keys],
  settings,
  errors,
  migrations,
  stats: [contactMethodStats],
  runners,
  recurring,
  routes,
  invariants,
  onUserDeleting,
  onUserMerging,
});
