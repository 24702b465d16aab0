import { z } from "zod";

/** What applications can be told of. */
export const EVENT_TYPES = ["touch.delivered", "touch.failed", "link.clicked", "contact.unsubscribed"] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Sent on request only, so that a receiver can be tried out. */
export const TEST_TYPE = "webhook.test";

export const WebhookEvent = z.strictObject({
  type: z.enum(EVENT_TYPES),
  /** What happened, in the words of its type: whoever tells of the same key again tells of the same event. */
  key: z.string().min(1),
  /** Unix time at which it happened. */
  at: z.number(),
  /** Names in snake_case. A `user_sub` in it ties the event to that person, and it is forgotten with them. */
  data: z.record(z.string(), z.unknown()),
});
export type WebhookEvent = Readonly<z.output<typeof WebhookEvent>>;

/** The body of a request, as it is stored and signed. */
export function bodyOf(event: { readonly type: string; readonly at: number; readonly data: object }): string {
  const { type, at, data } = event;
  return JSON.stringify({ type, timestamp: new Date(at * 1000).toISOString(), data });
}
