import { domain } from "../../domain.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { emailSettings } from "../../providers/settings.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { isLoopback, settings } from "./settings.ts";
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
    if (ctx.config.get(emailSettings.provider).length > 0) {
      if (ctx.config.get(settings.from) === undefined)
        throw kernelErrors.invalid_settings({
          message: `The configuration is not valid:\n  ${settings.from.env} is missing. It is: ${settings.from.doc}`,
        });
      // Some people send real mails from their own machine; they should know whom their links serve.
      if (isLoopback(new URL(ctx.config.get(settings.publicUrl)).hostname))
        ctx.alerts.warning(
          "emails:public_url_is_local",
          `links for leaving a list lead to this machine: set ${settings.publicUrl.env}`,
        );
    }
    return async () => {};
  },
});
