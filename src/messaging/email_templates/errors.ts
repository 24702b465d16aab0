import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  unknown_template: {
    status: 404,
    doc: "There is no email template with that slug.",
    hint: "`GET /api/1/admin/email/templates` lists them.",
  },
  invalid_parameters: {
    status: 422,
    doc: "The parameters do not fit the template.",
    hint: "The detail names each path; the template's JSON Schema says what belongs there.",
  },
  unknown_example: {
    status: 404,
    doc: "The template has fewer examples than that.",
    hint: "Examples are counted from 0.",
  },
  template_output_too_large: {
    status: 500,
    doc: "A template rendered more than a mail may hold.",
    hint: "Shorten the parameters, or bound them in the template's schema.",
  },
  picture_not_found: { status: 404, doc: "No picture of a mail has this name." },
  template_asset_unreachable: {
    status: 503,
    doc: "A picture that belongs into the mail could not be fetched.",
    hint: "Mails are tried again by themselves; check that the address in `CARILLON_EMAIL_BRAND_LOGO` answers.",
  },
  template_too_slow: {
    status: 503,
    doc: "Writing the mail took more than 5 seconds.",
    hint: "Mails are tried again by themselves; a picture that is fetched slowly is better a file.",
  },
  bad_mail: {
    status: 422,
    doc: "A header, an address or an attachment of the mail cannot be sent as it is.",
    hint: "Line breaks and control characters never belong into headers; addresses have one @ and an ASCII local part.",
  },
});
