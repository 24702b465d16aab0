import { settings } from "../../kernel/config.ts";

export const alertSettings = {
  alertWebhookUrl: settings.optionalText("alert.webhookUrl", {
    doc: "where warnings and errors are posted as JSON; unset = nowhere",
    secret: true,
  }),
  opsWebhookUrl: settings.optionalText("ops.webhookUrl", {
    doc: "where urgent warnings and news for operators are posted as JSON; unset = the alert webhook",
    secret: true,
  }),
};
