import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  unknown_message: {
    status: 404,
    doc: "No message of that uid is in any queue, and no step of it is kept.",
    hint: "Uids begin with crl_ and come from the call that queued the message. Steps are kept for CARILLON_MESSAGE_LOG_DAYS days.",
  },
});
