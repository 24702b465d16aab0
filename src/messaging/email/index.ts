import { domain } from "../../domain.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { emailSettings } from "../../providers/settings.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";
import { stats } from "./stats.ts";

/** Mails: from the queue to the provider, and what became of them. */
export const email = domain({
  name: "email",
  keys: [keys],
  settings,
  errors,
  stats,
  runners,
  recurring,
  routes,
  invariants,
  async start(ctx) {
    if (ctx.config.get(emailSettings.provider).length > 0 && ctx.config.get(settings.from) === undefined)
      throw kernelErrors.invalid_settings({
        message: `The configuration is not valid:\n  ${settings.from.env} is missing. It is: ${settings.from.doc}`,
      });
    return async () => {};
  },
});
