import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  disableAfter: kinds.seconds("webhooks.disableAfter", {
    default: 432_000,
    min: 3_600,
    doc: "how long an endpoint may fail without a single success before it is switched off",
  }),
  keepFor: kinds.seconds("webhooks.keepFor", {
    default: 2_592_000,
    min: 3_600,
    doc: "how long messages that were delivered or given up can be looked at and sent again",
  }),
};
