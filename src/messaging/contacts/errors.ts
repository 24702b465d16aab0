import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  contact_method_not_found: {
    status: 404,
    doc: "You have no contact method with this uid.",
    hint: "`GET /api/1/users/me/contact_methods` lists those you have.",
  },
  token_not_found: { status: 404, doc: "This push token is not one of yours." },
  too_many_registrations: {
    status: 429,
    doc: "You registered push tokens too often within a minute.",
    hint: "Once at every start of the app is enough. Wait as long as Retry-After says.",
  },
  too_many_emails: {
    status: 409,
    doc: "You have as many email addresses as a person may have.",
    hint: "Remove one first.",
  },
  email_exists: { status: 409, doc: "You have this email address already." },
  invalid_phone_number: {
    status: 422,
    doc: "This is not a phone number that exists.",
    hint: "Write it with a plus sign and the country code: +14155550132.",
  },
  country_not_allowed: {
    status: 422,
    doc: "Numbers of this country are not served here.",
    hint: "The setting `sms.allowedCountries` says which are.",
  },
  already_suppressed: { status: 409, doc: "This address is suppressed already." },
  unreadable_csv: {
    status: 422,
    doc: "The file is no CSV of suppressed addresses.",
    hint: "An export shows the form: a first line with `email,reason,scope,note`, then one address a line.",
  },
  suppression_not_found: { status: 404, doc: "There is no such suppression." },
});
