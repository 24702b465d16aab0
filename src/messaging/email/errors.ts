import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  invalid_email: {
    status: 422,
    doc: "This mail cannot be sent.",
    hint: "The address has one @ and an ASCII local part, the subject is one line of 1 to 250 characters, and the whole has at most 256 KiB.",
  },
  email_backpressure: {
    status: 503,
    doc: "Too many mails wait to be sent.",
    hint: "Try again in a minute.",
  },
  email_suppressed: {
    status: 409,
    doc: "This address gets no such mails: its owner said so, or it cannot be reached.",
    hint: "`GET /api/1/admin/email/suppressions` says why.",
  },
  email_run_not_finished: { status: 404, doc: "This job has not finished a run yet." },
  invalid_unsubscribe_token: {
    status: 404,
    doc: "This link for leaving a list means nothing.",
    hint: "Use the link as it stands in the mail.",
  },
  unsubscribe_unavailable: {
    status: 503,
    doc: "The wish could not be written down.",
    hint: "Mailboxes try again by themselves; people may in a minute.",
  },
  unknown_list: {
    status: 422,
    doc: "The form names no lists, or one that does not exist.",
    hint: "Send `choose=lists` and `list=` for each list that is wanted; the page behind the link does.",
  },
  too_many_bad_tokens: { status: 429, doc: "Too many links that mean nothing came from one place." },
  too_many_test_mails: { status: 429, doc: "An administrator asked for too many test mails in a minute." },
  unknown_test_mail: {
    status: 404,
    doc: "No test mail is known by this uid.",
    hint: "What became of one is kept for half an hour after its last news.",
  },
  no_verified_email: {
    status: 404,
    doc: "The caller has no verified email address that a test mail could go to.",
    hint: "Sign in as a user with a verified address; an admin token alone has none.",
  },
});
