import { defineErrors } from "../../../src/kernel/errors.ts";

export const errors = defineErrors({
  note_not_found: {
    status: 404,
    doc: "You have no such note.",
    hint: "It may have expired: a note is gone for good when its time is over.",
  },
});
