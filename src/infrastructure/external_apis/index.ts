import { domain } from "../../domain.ts";
import { apiSpacingErrors } from "../../mechanisms/api-spacing/index.ts";
import { providerKeys } from "../../providers/keys.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";

/** Calls to slow or costly third parties, kept apart across all processes. */
export const externalApis = domain({
  name: "external_apis",
  keys: [keys, providerKeys],
  errors: apiSpacingErrors,
  routes,
  invariants,
});
