import { z } from "zod";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { exchangeSuppressions, liftThere } from "./provider-suppressions.ts";
import { PUSH_TOKEN, registerPushTokens } from "./push-tokens.ts";
import { settings } from "./settings.ts";
import { PLATFORMS } from "./tables.ts";

/** Repeating a registration refreshes it, so the job may run as often as it likes. */
export const createPushToken = defineRunner({
  name: "runners.push.create_push_token",
  category: 2,
  kwargs: z.strictObject({
    user_sub: z.string().min(1).max(128),
    expo_push_token: z.string().regex(PUSH_TOKEN),
    platform: z.enum(PLATFORMS),
  }),
  doc: "Gives a push token to the user whose app sent it.",
  retry: [5, 30, 300, 1800, 7200],
  async runMany(ctx, items) {
    await registerPushTokens(
      ctx,
      items.map(({ user_sub, expo_push_token, platform }) => ({ userSub: user_sub, token: expo_push_token, platform })),
    );
    return undefined;
  },
});

/** An administrator lifted suppressions: the provider's own list must not hold the addresses back either. */
export const liftAtProvider = defineRunner({
  name: "runners.contacts.lift_at_provider",
  category: 2,
  kwargs: z.strictObject({ emails: z.array(z.string()).min(1).max(1000) }),
  doc: "Takes email addresses off the list of the provider, after an administrator lifted their suppression.",
  retry: [5, 30, 300, 1800, 7200],
  run: (ctx, { emails }) => liftThere(ctx, emails),
});

export const syncSuppressions = defineRunner({
  name: "runners.contacts.sync_suppressions",
  category: 2,
  kwargs: z.strictObject({ since: z.number().min(0).optional() }),
  doc: "Exchanges bounces and complaints with the list that the provider of email keeps; of the last two days unless told otherwise.",
  budget: 3600,
  async run(ctx, { since }) {
    if (ctx.config.get(settings.syncSuppressions)) await exchangeSuppressions(ctx, since);
  },
});

export const runners = [createPushToken, liftAtProvider, syncSuppressions];

export const recurring = [recur(syncSuppressions, {}, { hours: [3], minutes: [40], seconds: [0] })];
