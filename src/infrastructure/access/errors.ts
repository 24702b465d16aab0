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
  sign_in_link_invalid: {
    status: 403,
    doc: "The sign-in link was used already, has expired, or was not copied whole.",
    hint: "Print a new one with `carillon admin login`.",
  },
  session_ended: {
    status: 401,
    doc: "This browser is no longer signed in.",
    hint: "Sign in again with a new link from `carillon admin login`.",
  },
  session_not_found: { status: 404, doc: "No browser with this uid is signed in." },
  foreign_page: {
    status: 403,
    doc: "A change in the name of a signed-in browser must come from the dashboard itself.",
    hint: "Reload the dashboard and try again. Programs use an admin token instead of the cookie.",
  },
  dashboard_nowhere: {
    status: 503,
    doc: "Nobody knows where the dashboard is: no server has started yet.",
    hint: "Start Carillon first, or set CARILLON_DASHBOARD_URL.",
  },
  root_secret_required: {
    status: 500,
    doc: "A production installation needs a root secret of its own.",
    hint: "Set CARILLON_ROOT_SECRET to at least 32 random characters, for example from `openssl rand -base64 48`.",
  },
});
