import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { migrations } from "./tables.ts";

/** Files in the object store: each has a row, or is removed; uploads in parts that survive interruptions. */
export const files = domain({
  name: "files",
  keys: [keys],
  settings,
  errors,
  migrations,
  runners,
  recurring,
  routes,
  invariants,
});
