import { z } from "zod";
import { defineRunner } from "../../jobs/runner.ts";
import { PUSH_TOKEN, registerPushTokens } from "./push-tokens.ts";
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

export const runners = [createPushToken];
