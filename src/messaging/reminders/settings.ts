import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  assignHorizon: kinds.seconds("reminders.assignHorizon", {
    default: 2_100,
    min: 1_801,
    doc: "how far ahead times are assigned: more than twice the quarter of an hour between two runs",
  }),
  staleness: kinds.seconds("reminders.staleness", {
    default: 3_600,
    doc: "how late a reminder may be before it is left out",
  }),
  quietFirst: kinds.seconds("reminders.quietFirst", {
    default: 0,
    doc: "how long after somebody's account was made they get their first reminder at the earliest",
  }),
  queuedLimit: kinds.integer("reminders.queuedLimit", {
    default: 2_000_000,
    min: 1,
    doc: "reminders with a time that may wait before no more get one",
  }),
  page: kinds.integer("reminders.page", { default: 1_000, min: 1, doc: "registrations that one query reads" }),
  group: kinds.integer("reminders.group", {
    default: 500,
    min: 1,
    max: 500,
    doc: "reminders that one call gives their time",
  }),
  batch: kinds.integer("reminders.batch", { default: 400, min: 1, max: 500, doc: "reminders that are sent at once" }),
};
