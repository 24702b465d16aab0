import { domain } from "../../domain.ts";
import { alertKeys, alertSettings } from "../../mechanisms/alerts/index.ts";
import { datedCounterKeys, datedCounterMigrations } from "../../mechanisms/dated-counters/index.ts";
import { keys as layeredCacheKeys } from "../../mechanisms/layered-cache/keys.ts";
import { errors } from "./errors.ts";
import { auditKeyspace, recurringJobs, watchQueues } from "./jobs.ts";
import { keys } from "./keys.ts";
import { watchQueueLengths } from "./queue-lengths.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

/** What operators see of the whole house, and the keys and tables of mechanisms that belong to no room of their own. */
export const operations = domain({
  name: "operations",
  keys: [keys, alertKeys, datedCounterKeys, layeredCacheKeys],
  settings: { ...alertSettings, ...settings },
  errors,
  migrations: datedCounterMigrations,
  runners: [auditKeyspace, watchQueues],
  recurring: recurringJobs,
  routes,
  start: async (ctx) => {
    const stop = watchQueueLengths(ctx);
    return async () => stop();
  },
});
