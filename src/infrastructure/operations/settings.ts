import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  queueAge: kinds.integer("alerting.queueAge", {
    default: 900,
    min: 60,
    doc: "seconds for which the first entry of a queue may wait, or a queue may be too long, before operators are warned",
  }),
  queueLength: kinds.integer("alerting.queueLength", {
    default: 100_000,
    min: 1,
    doc: "how many entries a queue may hold for longer than CARILLON_ALERTING_QUEUE_AGE before operators are warned",
  }),
};
