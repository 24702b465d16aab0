import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  deployment_not_configured: {
    status: 404,
    doc: "This installation takes no requests for updates.",
    hint: "Set CARILLON_DEPLOYMENT_SECRET to allow them.",
  },
  deployment_unauthorized: {
    status: 401,
    doc: "The deployment secret is missing or wrong.",
    hint: "Send it as `Authorization: Bearer <secret>`.",
  },
  too_many_deployment_requests: {
    status: 429,
    doc: "Too many requests for updates came from this address.",
    hint: "Wait as long as Retry-After says.",
  },
  unknown_unit: {
    status: 422,
    doc: "No unit of this installation has that name.",
    hint: "Units beyond the built-in ones are declared in CARILLON_UPDATE_UNITS.",
  },
  artefact_mismatch: {
    status: 502,
    doc: "The stored build is not the one that was announced: its size or its checksum differs.",
    hint: "The old build stays in use. Request the update again to build anew.",
  },
  build_failed: { status: 502, doc: "The builder did not produce a build." },
});
