import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  webhook_endpoint_not_found: { status: 404, doc: "There is no webhook endpoint with this uid." },
  webhook_message_not_found: {
    status: 404,
    doc: "There is no webhook message with this uid, or it is so old that it was forgotten.",
  },
  webhook_endpoint_disabled: {
    status: 409,
    doc: "This webhook endpoint is switched off, so nothing is sent to it.",
    hint: "Switch it on first: change it with `enabled: true`.",
  },
  too_many_webhook_endpoints: {
    status: 409,
    doc: "There are as many webhook endpoints as there may be.",
    hint: "Remove one that is not needed any more.",
  },
});
