import type { Config } from "../../kernel/config.ts";
import { settings } from "./settings.ts";

export const STATUS_WEBHOOK = "/api/1/sms/webhook";
export const INBOUND_WEBHOOK = "/api/1/sms/inbound_webhook";

/** Where the provider reports on texts, or nothing when it is not to. */
export function statusCallbackUrl(config: Config): string | undefined {
  const publicUrl = config.get(settings.publicUrl);
  if (publicUrl === undefined || !config.get(settings.statusCallback)) return undefined;
  return `${publicUrl.replace(/\/+$/, "")}${STATUS_WEBHOOK}`;
}
