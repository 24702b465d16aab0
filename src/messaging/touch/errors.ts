import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  touch_point_not_found: {
    status: 404,
    doc: "There is no such touch point.",
    hint: "`GET /api/1/admin/touch_points` lists those there are.",
  },
  event_slug_exists: { status: 409, doc: "Another touch point has this slug." },
  schema_fails_validation: {
    status: 409,
    doc: "The schema of the event is not a JSON Schema of an object whose properties have a type and an example.",
  },
  messages_dont_match_schema: {
    status: 409,
    doc: "A message uses other parameters than it declares, or parameters that the schema does not have.",
  },
  messages_changed: {
    status: 412,
    doc: "Somebody changed the messages since you read them.",
    hint: "Read the touch point again and repeat your change.",
  },
  parameters_mismatch: {
    status: 409,
    doc: "The parameters do not fit the schema of the event.",
    hint: "`GET /api/1/admin/touch_points/{uid}` shows the schema.",
  },
  touch_backpressure: {
    status: 503,
    doc: "Too many touches wait to be sent.",
    hint: "Try again in a quarter of a minute.",
  },
  no_destination: { status: 404, doc: "You have no address on this channel that can be reached." },
  touch_not_found: { status: 404, doc: "There is no such touch, or it is too long ago." },
  invalid_touch: { status: 422, doc: "This touch cannot be queued." },
  unknown_touch_job: { status: 422, doc: "A callback names a job that does not exist." },
  idempotency_key_reused: {
    status: 409,
    doc: "This idempotency key was used for another request.",
    hint: "Take a new key for each different request.",
  },
  campaign_not_found: {
    status: 404,
    doc: "There is no such campaign, or it has ended.",
    hint: "`GET /api/1/admin/campaigns` lists those there are.",
  },
  touch_run_not_finished: { status: 404, doc: "This job has not finished a run yet." },
});
