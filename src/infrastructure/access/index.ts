import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { migrations } from "./tables.ts";

/** Who may do what: admin tokens, access tokens, the keys they are signed with, and the log of what administrators did. */
export const access = domain({ name: "access", keys: [keys], settings, errors, migrations, routes });
