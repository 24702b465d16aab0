import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { migrations } from "./tables.ts";

/** Updating a fleet one instance at a time, and building once what all instances of a unit serve. */
export const deployments = domain({
  name: "deployments",
  keys: [keys],
  settings,
  errors,
  migrations,
  routes,
  invariants,
});
