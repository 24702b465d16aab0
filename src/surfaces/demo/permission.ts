import { standsIn } from "../../infrastructure/sandbox/service.ts";
import type { Config, Setting } from "../../kernel/config.ts";
import { emailSettings, pushSettings, smsSettings } from "../../providers/settings.ts";
import { settings } from "./settings.ts";

const PROVIDERS = [pushSettings.provider, smsSettings.provider, emailSettings.provider] as readonly Setting<unknown>[];

/** Why there may be no demo here, in a sentence; nothing when there may. Its people must never meet a real provider. */
export function whyNoDemo(config: Config): string | undefined {
  if (config.get(settings.demo) === "off") return `${settings.demo.env} is off.`;
  const real = PROVIDERS.find((setting) => (config.get(setting) as readonly string[]).length > 0);
  if (real) return `${real.env} names a real provider.`;
  return standsIn(config) ? undefined : "The simulated providers do not run here.";
}
