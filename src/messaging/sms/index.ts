import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { stats } from "./stats.ts";

/** Text messages: sent, followed to their end, and ended by one word from whoever gets them. */
export const sms = domain({
  name: "sms",
  keys: [keys],
  settings,
  errors,
  stats,
  runners,
  recurring,
  routes,
  invariants,
});
