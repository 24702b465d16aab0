import { defineErrors } from "../../kernel/errors.ts";

/** What the server itself refuses, before or instead of a room. */
export const errors = defineErrors({
  invalid_request: {
    status: 422,
    doc: "The request does not fit the route's schema.",
    hint: "`detail` names each place and what is wrong there; /docs shows the schema.",
  },
  malformed_json: { status: 400, doc: "The body is not valid JSON." },
  bad_request: { status: 400, doc: "The request cannot be understood." },
  headers_too_large: { status: 431, doc: "The headers of the request are too long." },
  bad_url: { status: 400, doc: "The address of the request is malformed." },
  body_too_large: { status: 413, doc: "The body is longer than this route takes." },
  length_required: { status: 411, doc: "An upload needs a Content-Length header." },
  unsupported_media_type: {
    status: 415,
    doc: "The route does not take a body of this Content-Type.",
    hint: "Send application/json, unless /docs says otherwise.",
  },
  not_found: { status: 404, doc: "There is nothing at this address.", hint: "/docs lists every route." },
  method_not_allowed: {
    status: 405,
    doc: "The address exists, but not with this method.",
    hint: "The Allow header lists the methods.",
  },
  upgrade_required: { status: 426, doc: "This address speaks WebSocket only." },
  not_ready: { status: 503, doc: "A part that is needed to answer requests does not work right now." },
  metrics_forbidden: {
    status: 403,
    doc: "Metrics are answered only on this machine.",
    hint: "Set CARILLON_METRICS_TOKEN and send it as `Authorization: Bearer`.",
  },
  internal_error: {
    status: 500,
    doc: "Something went wrong on the server. It was logged under the request id.",
    hint: "Try again; if it stays, look for the request id in the logs.",
  },
});
