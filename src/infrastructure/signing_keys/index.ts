import { domain } from "../../domain.ts";
import { signingKeyErrors } from "./errors.ts";
import { signingKeyInvariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { signingKeySettings } from "./settings.ts";

/** Copies of the public keys with which outside issuers sign, and the checking of their tokens. */
export const signingKeys = domain({
  name: "signing_keys",
  keys: [keys],
  settings: signingKeySettings,
  errors: signingKeyErrors,
  invariants: signingKeyInvariants,
});
