import { settings } from "../../kernel/config.ts";

export const messageLogSettings = {
  enabled: settings.flag("messageLog.enabled", {
    default: true,
    doc: "whether the steps of every message (queued, accepted, delivered and so on) are kept in SQL, where `carillon trace` finds them. Texts, codes and addresses are never part of it",
  }),
  days: settings.integer("messageLog.days", {
    default: 30,
    min: 1,
    max: 3_650,
    unit: "days",
    doc: "how long the steps of messages are kept",
  }),
};
