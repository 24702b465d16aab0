import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { routes } from "./routes.ts";
import { startSandbox } from "./service.ts";
import { settings } from "./settings.ts";

/** Simulated providers of push, SMS and email on this machine, with an inbox of what was sent. */
export const sandbox = domain({
  name: "sandbox",
  settings,
  errors,
  routes,
  start: startSandbox,
});
