import { defineErrors } from "../../kernel/errors.ts";

export const tokenErrors = defineErrors({
  token_check_unavailable: {
    status: 503,
    doc: "The token cannot be checked right now, and an unchecked token is never accepted.",
    hint: "Try again in a few seconds.",
  },
});
