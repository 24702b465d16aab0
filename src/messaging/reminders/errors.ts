import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  reminder_not_found: { status: 404, doc: "You have no such reminder." },
  reminders_run_not_finished: { status: 404, doc: "This job has not finished a run yet." },
});
