import type { Context } from "../../jobs/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { emailSettings } from "../email/service.ts";
import { linkSettings } from "../links/service.ts";
import { pushSettings } from "../push/service.ts";
import { smsSettings } from "../sms/service.ts";
import type { TouchChannel } from "./entries.ts";
import { settings } from "./settings.ts";

/** What a channel may be late by, beyond what its settings say. */
const GRACE = 600;
/** Silences of a text, each asked about, before it is given up. */
const SILENCES = 5;
/** Links count on the day they were made, and two days are open. */
const LATEST_LEAK = 172_800;

type Configured = Pick<Context, "config">;

/** The longest that a message of each channel may take to end. */
function longestLives({ config }: Configured): Readonly<Record<TouchChannel, number>> {
  const last = (delays: readonly number[]) => Math.max(0, ...delays);
  return {
    push:
      config.get(pushSettings.maxAge) +
      last(config.get(pushSettings.retryDelays)) +
      config.get(pushSettings.receiptDelay) * (1 + config.get(pushSettings.receiptRetries)),
    sms:
      config.get(smsSettings.retryAge) +
      last(config.get(smsSettings.retryDelays)) +
      config.get(smsSettings.silence) * SILENCES,
    email:
      config.get(emailSettings.retryAge) +
      last(config.get(emailSettings.retryDelays)) +
      config.get(emailSettings.receiptTimeout),
  };
}

/**
 * Refuses settings that contradict each other. A touch must be waited for longer than any message takes, or it would fail
 * and its message arrive; and its links must be kept longer than that, or they would be gone before it ends.
 */
export function checkTimes(ctx: Configured): void {
  const expiry = ctx.config.get(settings.pendingExpiry);
  const leakAge = ctx.config.get(linkSettings.leakAge);
  const faults = Object.entries(longestLives(ctx)).flatMap(([channel, longest]) =>
    expiry > longest + GRACE
      ? []
      : [`${settings.pendingExpiry.env}=${expiry} is too short: ${channel} may take ${longest + GRACE} s`],
  );
  if (leakAge <= expiry)
    faults.push(`${linkSettings.leakAge.env}=${leakAge} must be longer than ${settings.pendingExpiry.env}=${expiry}`);
  const wait = ctx.config.get(settings.staleAfter);
  if (leakAge <= wait)
    faults.push(`${linkSettings.leakAge.env}=${leakAge} must be longer than ${settings.staleAfter.env}=${wait}`);
  if (leakAge >= LATEST_LEAK)
    faults.push(`${linkSettings.leakAge.env}=${leakAge} must be shorter than two days, ${LATEST_LEAK} s`);
  if (faults.length > 0)
    throw kernelErrors.invalid_settings({ message: `The configuration is not valid:\n  ${faults.join("\n  ")}` });
}
