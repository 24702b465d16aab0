import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { routes } from "./routes.ts";
import { brandOf, checkTemplates } from "./service.ts";
import { settings } from "./settings.ts";

/** What mails look like: templates compiled once, their parameters, previews, and the bytes that are sent. */
export const emailTemplates = domain({
  name: "email_templates",
  settings,
  errors,
  routes,
  async start(ctx) {
    checkTemplates(brandOf(ctx.config));
    return async () => {};
  },
});
