import { z } from "zod";
import { emitEvents, isWanted, type WebhookEvent } from "../../infrastructure/webhooks/service.ts";
import type { Context } from "../../jobs/context.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { type Channel, installEffects } from "../contacts/service.ts";
import { installClickEffects, originsOfLinks } from "../links/service.ts";
import { type Arrival, type EndedTouch, installTouchEffects } from "./effects.ts";
import { FailedTouch, type TouchChannel } from "./entries.ts";

/** What applications hear of touches, clicks and people who leave. The handbook has the payloads: docs/webhooks.md. */
const CHANNEL_OF: Readonly<Record<Channel, TouchChannel>> = { email: "email", phone: "sms", push: "push" };

/** A touch ends once, so it is the key. */
const arrivalEvent = ({ touchUid, userSub, channel, destination, at }: Arrival): WebhookEvent => ({
  type: "touch.delivered",
  key: touchUid,
  at,
  data: { touch_uid: touchUid, user_sub: userSub, channel, destination },
});

export const tellFailed = defineRunner({
  name: "runners.touch.tell_failed",
  category: 2,
  kwargs: FailedTouch,
  doc: "Tells webhook endpoints of touches that failed.",
  retry: [5, 60, 600],
  async runMany(ctx, items) {
    const at = ctx.clock.now();
    await emitEvents(
      ctx,
      items.map((data) => ({ type: "touch.failed", key: data.touch_uid, at, data })),
    );
    return undefined;
  },
});

/** Also the callback of a touch that has none of its own: without one it is not followed, and nobody would know its end. */
export function failedCallback({ touchUid, userSub, channel }: EndedTouch) {
  return { name: tellFailed.name, kwargs: { touch_uid: touchUid, user_sub: userSub, channel } };
}

installTouchEffects({
  arrived: (ctx, arrivals) => emitEvents(ctx, arrivals.map(arrivalEvent)),
  failureJob: (ctx, touch) => (isWanted(ctx, "touch.failed") ? failedCallback(touch) : undefined),
});

const Clicks = z.strictObject({
  clicks: z
    .array(
      z.strictObject({
        code: z.string(),
        uid: z.string(),
        track_type: z.enum(["on_click", "post_login"]),
        parent_uid: z.string().nullable(),
        user_sub: z.string().nullable(),
        at: z.number(),
      }),
    )
    .min(1),
});

/** Visitors do not wait for this: a click only leaves a job, which finds out what the click was about. */
export const tellClicks = defineRunner({
  name: "runners.touch.tell_clicks",
  category: 2,
  kwargs: Clicks,
  doc: "Tells webhook endpoints of clicks.",
  retry: [5, 60, 600],
  async runMany(ctx, items) {
    await emitClicks(
      ctx,
      items.flatMap(({ clicks }) => clicks),
    );
    return undefined;
  },
});

installClickEffects({
  async clicked(ctx, clicks) {
    if (!isWanted(ctx, "link.clicked")) return;
    await ctx.jobs.enqueue(tellClicks, {
      clicks: clicks.map(({ code, click }) => ({
        code,
        uid: click.uid,
        track_type: click.track_type,
        parent_uid: click.parent_uid ?? null,
        user_sub: click.user_sub ?? null,
        at: click.clicked_at,
      })),
    });
  },
});

/** A code may be a credential, so events name the click and the touch instead. A link that is gone is told of no more. */
async function emitClicks(ctx: Context, clicks: z.output<typeof Clicks>["clicks"]): Promise<void> {
  if (!isWanted(ctx, "link.clicked")) return;
  const origins = await originsOfLinks(ctx, [...new Set(clicks.map(({ code }) => code))]);
  await emitEvents(
    ctx,
    clicks.flatMap(({ code, uid, track_type, parent_uid, user_sub, at }): readonly WebhookEvent[] => {
      const origin = origins.get(code);
      const data = { click_uid: uid, ...origin, track_type, parent_click_uid: parent_uid, user_sub };
      return origin ? [{ type: "link.clicked", key: uid, at, data }] : [];
    }),
  );
}

installEffects({
  unsubscriptions: {
    told: (ctx, unsubscribed) =>
      emitEvents(
        ctx,
        unsubscribed.map(({ key, channel, address, reason, scope, userSub, at }) => ({
          type: "contact.unsubscribed",
          key: `${key} ${userSub}`,
          at,
          data: { user_sub: userSub, channel: CHANNEL_OF[channel], address, reason, scope },
        })),
      ),
  },
});
