import { defineErrors } from "../../kernel/errors.ts";

export const apiSpacingErrors = defineErrors({
  api_busy: {
    status: 503,
    doc: "The next free moment for this API lies further ahead than the caller wants to wait.",
    hint: "Try again after the given time; a job bounces until then.",
  },
});
