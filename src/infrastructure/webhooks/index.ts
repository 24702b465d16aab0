import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { recurring, runners } from "./jobs.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { migrations } from "./tables.ts";
import { followMerge, forgetUser } from "./upkeep.ts";

/** Outgoing webhooks: applications hear of what happened by signed requests. */
export const webhooks = domain({
  name: "webhooks",
  settings,
  errors,
  migrations,
  runners,
  recurring,
  routes,
  onUserDeleting: forgetUser,
  onUserMerging: followMerge,
});
