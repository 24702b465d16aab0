import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { watchOutages } from "./outage.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";
import { migrations } from "./tables.ts";

/** Links in messages: they work at once, are stored when their message arrives, and know who used them. */
export const links = domain({
  name: "links",
  keys: [keys],
  settings,
  errors,
  migrations,
  stats: [linkStats],
  runners,
  recurring,
  routes,
  invariants,
  start: async (ctx, { web }) => (web ? watchOutages(ctx) : async () => {}),
  // Their rows go with the user's: touches by cascade, clicks keep that there was somebody.
  onUserDeleting: async () => {},
});
