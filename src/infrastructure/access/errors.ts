import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  credential_missing: {
    status: 401,
    doc: "This needs a credential.",
    hint: "Send `Authorization: Bearer` with an access token, or with an admin token for admin routes.",
  },
  credential_invalid: {
    status: 401,
    doc: "The credential is malformed or was not issued here.",
    hint: "Check that it was copied whole and belongs to this installation.",
  },
  credential_expired: { status: 401, doc: "The credential has expired.", hint: "Ask for a new one." },
  credential_revoked: { status: 401, doc: "The credential was revoked.", hint: "Ask for a new one." },
  not_allowed: {
    status: 403,
    doc: "The credential is valid, but not for this.",
    hint: "Admin routes need an admin token or a user with the role admin; user routes need a user's access token.",
  },
  too_many_admin_writes: {
    status: 429,
    doc: "This administrator has made too many changes within a minute.",
    hint: "Wait as long as Retry-After says.",
  },
  admin_token_not_found: { status: 404, doc: "There is no such admin token that still works." },
  root_secret_required: {
    status: 500,
    doc: "A production installation needs a root secret of its own.",
    hint: "Set CARILLON_ROOT_SECRET to at least 32 random characters, for example from `openssl rand -base64 48`.",
  },
});
