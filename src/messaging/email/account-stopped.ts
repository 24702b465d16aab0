import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";

const TELL_EVERY = 600;
/** When people were last told, by the monotonic clock. */
const toldAt = new WeakMap<Config, number>();

/**
 * Tells people that the provider stopped our account. Every mail of a run hears the same refusal: told one by one they
 * would use up the hour's share of this alert within a second, and the hour after would be silent.
 */
export function tellAccountStopped(ctx: Pick<Context, "alerts" | "clock" | "config">, reason: string | null): void {
  const now = ctx.clock.monotonic();
  if (now - (toldAt.get(ctx.config) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY) return;
  toldAt.set(ctx.config, now);
  ctx.alerts.warning("emails:account_stopped", `the provider stopped our account: ${reason}`, { urgent: true });
}
