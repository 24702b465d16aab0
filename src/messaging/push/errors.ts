import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  invalid_push: {
    status: 422,
    doc: "This notification could never be sent.",
    hint: "A token looks like ExponentPushToken[...], and the whole message has at most 4096 bytes.",
  },
  push_job_never_finished: {
    status: 404,
    doc: "This job has not finished a run yet.",
    hint: "Look at the recurring jobs: it may never have started, or its first run is under way.",
  },
});
