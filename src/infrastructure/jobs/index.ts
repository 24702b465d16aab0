import { domain } from "../../domain.ts";
import { jobErrors, jobKeys, jobSettings } from "../../jobs/index.ts";
import { jobMigrations } from "../../jobs/tables.ts";
import { lockErrors, lockKeys } from "../../mechanisms/lock/index.ts";
import { quarantineErrors, quarantineKeys } from "../../mechanisms/quarantine/index.ts";
import { invariants } from "./invariants.ts";
import { recurringJobs, runners } from "./jobs.ts";
import { progressErrors } from "./progress-access.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

/** What operators see of the job system and can do with it, and the jobs that watch over it. */
export const jobs = domain({
  name: "jobs",
  keys: [jobKeys, lockKeys, quarantineKeys],
  settings: { ...jobSettings, ...settings },
  errors: { ...jobErrors, ...lockErrors, ...quarantineErrors, ...progressErrors },
  migrations: jobMigrations,
  runners,
  recurring: recurringJobs,
  routes,
  invariants,
});
