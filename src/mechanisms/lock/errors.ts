import { defineErrors } from "../../kernel/errors.ts";

export const lockErrors = defineErrors({
  lock_held: {
    status: 409,
    doc: "Somebody else holds the lock that this work needs.",
    hint: "Try again later; `carillon locks` shows the holder.",
  },
  lock_lost: {
    status: 409,
    doc: "The lock was lost while the work went on, so the rest was left to the new holder.",
    hint: "Nothing is to be done: the next run finds what is left.",
  },
  not_a_lock: { status: 400, doc: "The key is not declared as a lock, so it is not released." },
  lock_absent: { status: 404, doc: "Nobody holds this lock." },
});
