import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  invalid_sms: {
    status: 422,
    doc: "This text cannot be sent.",
    hint: "The number has a plus sign and the country code; the text has 1 to 1,600 characters; with the arguments of its callbacks it has at most 32,512 bytes.",
  },
  suppressed: {
    status: 409,
    doc: "This number gets no texts: its owner said so, or it cannot be reached.",
    hint: "`GET /api/1/admin/sms/suppressed_phone_numbers` says why.",
  },
  sms_run_not_finished: {
    status: 404,
    doc: "This job has not finished a run yet.",
    hint: "Each job of texts runs at least once a minute while a worker is up; `carillon jobs` shows whether one is.",
  },
});
