import { sandboxAddress, standsIn } from "../../infrastructure/sandbox/service.ts";
import type { Config } from "../../kernel/config.ts";
import type { ReceivedWebhook } from "../../kernel/route.ts";
import type { WebhookRefusal } from "../../mechanisms/webhook-desk/index.ts";
import { twilioAccounts } from "../../providers/settings.ts";
import { fitsTwilioSignature, isTwilioSignature } from "../../providers/twilio-signature.ts";
import { settings } from "./settings.ts";
import { type Form, readForm } from "./webhook-form.ts";

/** The most bytes of a webhook. */
export const LARGEST_BODY = 1_048_576;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

export const REFUSAL_STATUS: Readonly<Record<WebhookRefusal, number>> = {
  signature_missing: 401,
  signature_invalid: 403,
  body_parse_error: 400,
  body_max_size_exceeded: 413,
  body_read_error: 500,
};

export type CheckedWebhook =
  | { readonly ok: true; readonly form: Form }
  | { readonly ok: false; readonly refusal: WebhookRefusal };

const refuse = (refusal: WebhookRefusal): CheckedWebhook => ({ ok: false, refusal });

/** Whether a webhook is the provider's. Nothing of a body is believed, or logged, before its signature fits. */
export function checkWebhook(config: Config, { headers, body, path }: ReceivedWebhook): CheckedWebhook {
  const signature = headers["x-twilio-signature"];
  if (typeof signature !== "string" || signature === "") return refuse("signature_missing");
  if (!isForm(headers["content-type"])) return refuse("body_parse_error");
  if (!isTwilioSignature(signature)) return refuse("signature_invalid");
  if (body === "broken") return refuse("body_read_error");
  if (body === "too_large") return refuse("body_max_size_exceeded");
  if (body.length === 0) return refuse("signature_invalid");
  const form = readForm(body);
  if (!form) return refuse("body_parse_error");
  // Without an address of our own, the one we were called by: who forges it still lacks the token.
  const publicUrl = config.get(settings.publicUrl) ?? addressedAs(headers.host);
  if (publicUrl === undefined) return refuse("signature_invalid");
  const request = { publicUrl, path, content: form.content };
  const signed = tokensOf(config).some((authToken) => fitsTwilioSignature(authToken, signature, request));
  return signed ? { ok: true, form } : refuse("signature_invalid");
}

/** The type that fitted last: it is the same for almost every webhook. */
let usualType: string | undefined;

function isForm(type = ""): boolean {
  if (type === usualType) return true;
  if (!FORM_TYPE.test(type)) return false;
  usualType = type;
  return true;
}

function addressedAs(host = "localhost"): string | undefined {
  const address = `http://${host}`;
  return URL.canParse(address) ? address : undefined;
}

/** What our accounts are called and sign with, as far as they are configured. */
interface Accounts {
  readonly sids: readonly (string | undefined)[];
  readonly tokens: readonly string[];
}

/** Thousands of webhooks a second ask for the same. */
const accountsOf = new WeakMap<Config, Accounts>();

function ourAccounts(config: Config): Accounts {
  const known = accountsOf.get(config);
  if (known) return known;
  const all = Object.values(twilioAccounts);
  const accounts = {
    sids: all.map(({ accountSid }) => config.get(accountSid)),
    tokens: all.flatMap(({ authToken }) => config.get(authToken) || []),
  };
  accountsOf.set(config, accounts);
  return accounts;
}

/** What a webhook may be signed with: the secret of each account, or of the simulated one in the place of the first. */
function tokensOf(config: Config): readonly string[] {
  const { tokens } = ourAccounts(config);
  if (config.get(twilioAccounts.twilio.authToken)) return tokens;
  const simulated = standsIn(config) ? sandboxAddress(config).twilio.authToken : undefined;
  return simulated ? [simulated, ...tokens] : tokens;
}

/** Whether an account is one of ours. Any is while the first has no name: the simulated provider may have its place. */
export function isOurAccount(config: Config, sid: string): boolean {
  const { sids } = ourAccounts(config);
  return sids[0] === undefined || sids.includes(sid);
}
