import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  unknown_key: {
    status: 401,
    doc: "The token is signed with a key that its issuer does not publish.",
    hint: "Sign in again to get a fresh token.",
  },
  invalid_issuer_token: {
    status: 401,
    doc: "The token of the outside issuer is malformed, expired, or not made for this installation.",
    hint: "Sign in again to get a fresh token.",
  },
  nonce_mismatch: {
    status: 401,
    doc: "The token does not belong to the sign-in that was started.",
    hint: "Start the sign-in again.",
  },
  signing_keys_unavailable: {
    status: 503,
    doc: "The issuer's signing keys cannot be fetched right now, and no usable copy is left.",
    hint: "Try again in a few seconds.",
  },
  issuer_not_configured: {
    status: 404,
    doc: "This installation does not accept tokens of that issuer.",
    hint: "Set CARILLON_COGNITO_POOL and CARILLON_COGNITO_CLIENT to accept them.",
  },
});
