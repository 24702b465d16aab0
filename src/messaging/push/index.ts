import { domain } from "../../domain.ts";
import { installEffects } from "../contacts/service.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { pushTokenStats, stats } from "./stats.ts";

// Tokens belong to contacts; what happens to them is counted here, in the transaction that does it.
installEffects({ tokenCounts: { count: (counted, event, by) => void counted.incr(pushTokenStats, event, { by }) } });

/** Notifications on people's devices: sent, checked, and told of to whoever asked for them. */
export const push = domain({
  name: "push",
  keys: [keys],
  settings,
  errors,
  stats,
  runners,
  recurring,
  routes,
  invariants,
});
