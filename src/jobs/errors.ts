import { defineErrors } from "../kernel/errors.ts";

export const jobErrors = defineErrors({
  job_too_large: {
    status: 413,
    doc: "The job's JSON does not fit a queue.",
    hint: "Store the data and pass its uid: a job of more than 512 KiB is refused.",
  },
  unknown_runner: {
    status: 404,
    doc: "No runner has this name.",
    hint: "`carillon jobs runners` prints the names there are.",
  },
  unknown_job: {
    status: 422,
    doc: "A callback names a job that does not exist.",
    hint: "`GET /api/1/admin/jobs/runners` lists those there are.",
  },
  invalid_kwargs: { status: 422, doc: "The job's kwargs do not have the shape that its runner declares." },
  backpressure: { status: 503, doc: "The queue is full.", hint: "Wait until workers have caught up, then try again." },
  unknown_recurring_job: {
    status: 404,
    doc: "No recurring job has this digest.",
    hint: "`carillon jobs list` prints the schedule with its digests.",
  },
  failed_job_not_found: { status: 404, doc: "No failed job has this id; it was requeued or removed already." },
  invalid_schedule: {
    status: 500,
    doc: "A recurring job is declared with a schedule that cannot be followed.",
    hint: "Correct its declaration; the message says how.",
  },
});
