import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  user_not_found: {
    status: 404,
    doc: "There is no such user.",
    hint: "Check the sub; deleted users are gone for good.",
  },
  user_exists: { status: 409, doc: "A user with this sub already exists.", hint: "Read it, or leave the sub out." },
});
