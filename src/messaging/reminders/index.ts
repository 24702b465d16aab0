import "./effects.ts";
import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { countKeys, keys } from "./keys.ts";
import { countLeavingUser, countNewUser } from "./preferences.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { stats } from "./stats.ts";
import { migrations } from "./tables.ts";

/** Daily reminders: once a day, inside the hours that a person chose, in their own timezone. */
export const reminders = domain({
  name: "reminders",
  keys: [keys, countKeys],
  settings,
  errors,
  migrations,
  stats,
  runners,
  recurring,
  routes,
  invariants,
  onUserCreated: countNewUser,
  // Contact methods are removed first, and with them the reminders, counted; what is left goes by cascade.
  onUserDeleting: countLeavingUser,
});
