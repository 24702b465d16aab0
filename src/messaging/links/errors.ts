import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  link_not_found: { status: 404, doc: "There is no link with this code, or its message never arrived." },
  unknown_page: {
    status: 422,
    doc: "A link names a page or a preview that nobody declared, or its extra has another shape.",
    hint: "Declare it with definePage or definePreview before links are made with it.",
  },
  codes_exhausted: {
    status: 500,
    doc: "No free short code was found, although they grew to 16 bytes.",
    hint: "Something makes the same codes again and again: look at the source of randomness.",
  },
  invalid_code: { status: 403, doc: "This code does not belong to a link that ends a subscription." },
  email_mismatch: {
    status: 403,
    doc: "The message with this link went to another address.",
    hint: "Use the address that got the message.",
  },
  too_many_uses: {
    status: 429,
    doc: "Links are used too often by people who are not signed in.",
    hint: "Try again in some seconds.",
  },
  too_many_leaves: {
    status: 429,
    doc: "This code was used for leaving ten times within an hour.",
    hint: "Try again later, or leave with the link of another mail.",
  },
  links_run_not_finished: { status: 404, doc: "This job has not finished a run yet." },
});
