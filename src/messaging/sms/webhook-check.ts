import type { IncomingHttpHeaders } from "node:http";
import { sandboxAddress, standsIn } from "../../infrastructure/sandbox/service.ts";
import type { Config } from "../../kernel/config.ts";
import { smsSettings } from "../../providers/settings.ts";
import { isTwilioSignature, verifyTwilioSignature } from "../../providers/twilio-signature.ts";
import { settings } from "./settings.ts";

export const LARGEST_BODY = 1_048_576;
const FORM = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
const utf8 = new TextDecoder("utf-8", { fatal: true });

export type Refusal =
  | "signature_missing"
  | "signature_invalid"
  | "body_parse_error"
  | "body_max_size_exceeded"
  | "body_read_error";

export const REFUSAL_STATUS: Readonly<Record<Refusal, number>> = {
  signature_missing: 401,
  signature_invalid: 403,
  body_parse_error: 400,
  body_max_size_exceeded: 413,
  body_read_error: 500,
};

export type CheckedWebhook =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly refusal: Refusal };

export interface ReceivedWebhook {
  readonly headers: IncomingHttpHeaders;
  /** Undefined when there was none. */
  readonly body: Buffer | undefined;
  /** Path and query, as asked for. */
  readonly path: string;
}

const refuse = (refusal: Refusal): CheckedWebhook => ({ ok: false, refusal });

/** Whether a webhook is the provider's. Nothing of a body is believed, or logged, before its signature fits. */
export function checkWebhook(config: Config, { headers, body, path }: ReceivedWebhook): CheckedWebhook {
  const signature = headers["x-twilio-signature"];
  if (typeof signature !== "string" || signature === "") return refuse("signature_missing");
  if (!FORM.test(headers["content-type"] ?? "")) return refuse("body_parse_error");
  if (!isTwilioSignature(signature)) return refuse("signature_invalid");
  if (body !== undefined && body.length > LARGEST_BODY) return refuse("body_max_size_exceeded");
  if (body === undefined || body.length === 0) return refuse("signature_invalid");
  const fields = fieldsOf(body);
  if (!fields) return refuse("body_parse_error");
  const authToken = config.get(smsSettings.twilioAuthToken) ?? simulatedToken(config);
  // Without an address of our own, the one we were called by: who forges it still lacks the token.
  const publicUrl = config.get(settings.publicUrl) ?? `http://${headers.host ?? "localhost"}`;
  if (!authToken || !URL.canParse(publicUrl)) return refuse("signature_invalid");
  const signed = verifyTwilioSignature(authToken, signature, { publicUrl, path, fields });
  return signed ? { ok: true, fields } : refuse("signature_invalid");
}

/** What the simulated provider signs with, where it stands in for a real one. */
function simulatedToken(config: Config): string | undefined {
  return standsIn(config) ? sandboxAddress(config).twilio.authToken : undefined;
}

/** The fields of a form, or nothing when it is not text or says something twice. */
function fieldsOf(body: Buffer): ReadonlyMap<string, string> | undefined {
  const fields = new Map<string, string>();
  try {
    for (const [name, value] of new URLSearchParams(utf8.decode(body))) {
      if (fields.has(name)) return undefined;
      fields.set(name, value);
    }
  } catch {
    return undefined;
  }
  return fields;
}
