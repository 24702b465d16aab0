import { domain } from "../../domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";

/** Copies of the public keys with which outside issuers sign, and the checking of their tokens. */
export const signingKeys = domain({
  name: "signing_keys",
  keys: [keys],
  settings,
  errors,
  invariants,
});
