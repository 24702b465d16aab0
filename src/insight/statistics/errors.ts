import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  unknown_family: {
    status: 404,
    doc: "There are no statistics of that name.",
    hint: "GET /api/1/admin/stats lists those there are.",
  },
  bad_date: {
    status: 422,
    doc: "A date is not of the form YYYY-MM-DD, or there is no such day.",
    hint: "Write it as 2026-03-08, in the statistics timezone.",
  },
  bad_range: {
    status: 422,
    doc: "The days that were asked for end before they begin, or are more than ten years.",
    hint: "Ask for fewer days at a time; the tables of statistics have all of them.",
  },
  source_unavailable: {
    status: 503,
    doc: "No copy of the chart is at hand, and the database or Redis that it is built from does not answer.",
    hint: "Try again in a few seconds.",
  },
  timezone_changed: {
    status: 409,
    doc: "The statistics timezone is not the one that the statistics were counted in.",
    hint: "Set CARILLON_STATISTICS_TZ back, or start once with CARILLON_STATS_REBASE=1 while no other process runs: it closes all days of the old timezone first.",
  },
  columns_missing: {
    status: 503,
    doc: "A table of statistics lacks columns for declared events.",
    hint: "Give events that came after the table a `since` with the next number, so that a step of the migrations adds them.",
  },
});
