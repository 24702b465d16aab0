import { createHash } from "node:crypto";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { getUsers, errors as userErrors } from "../../people/users/service.ts";
import { abandonLinks, addressesOf, CODE_STYLES, checkTarget, createLinks, linkCallbacks } from "../links/service.ts";
import { type NewTouch, newTouchUid, sendTouches } from "./enqueue.ts";
import { TOUCH_CHANNELS, type TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import { EventSlug, faultOfParameters, type TouchPoint } from "./point.ts";
import { pointsBySlug } from "./point-store.ts";
import { failedCallback } from "./webhooks.ts";

const Extra = z.record(z.string(), z.unknown()).default({});

export const OrderedLink = z.strictObject({
  parameter: z.string().min(1).max(100).meta({ description: "The parameter of the event that gets the address" }),
  page_identifier: z.string().default("home"),
  page_extra: Extra,
  preview_identifier: z.string().default("default"),
  preview_extra: Extra,
  code_style: z.enum(CODE_STYLES).default("normal"),
});

/** What an application says: tell this person about this event on these channels. */
export const Order = z.strictObject({
  user_sub: z.string().min(1).max(255),
  touch_point_event_slug: EventSlug,
  channels: z.array(z.enum(TOUCH_CHANNELS)).min(1).max(3),
  event_parameters: z.record(z.string(), z.unknown()).default({}),
  links: z.array(OrderedLink).max(10).default([]),
});
export type Order = z.output<typeof Order>;

export interface SentTouch {
  readonly uid: string;
  readonly user_sub: string;
  readonly channel: TouchChannel;
  readonly codes: readonly string[];
}

interface Planned {
  readonly uid: string;
  readonly order: Order;
  readonly channel: TouchChannel;
}

const RETRY_AFTER = 15;

/** Checks orders and makes their links: everything that precedes the queue. A seed always gives the same uids. */
export async function prepareOrders(
  ctx: Context,
  orders: readonly Order[],
  seed: string | undefined,
): Promise<readonly SentTouch[]> {
  await check(ctx, orders);
  const touches = plannedOf(orders).map((plan, at): Planned => ({ ...plan, uid: uidFor(seed, at) }));
  const codes = await makeLinks(ctx, touches);
  return touches.map(({ uid, order, channel }) => ({
    uid,
    user_sub: order.user_sub,
    channel,
    codes: codes.get(uid) ?? [],
  }));
}

/** Queues prepared touches: all of them or, when there is no room, none. Repeating it with one call uid queues them once. */
export async function queueOrders(
  ctx: Context,
  orders: readonly Order[],
  touches: readonly SentTouch[],
  callUid: string,
): Promise<void> {
  const planned = plannedOf(orders);
  const sent = await sendTouches(
    ctx,
    touches.map(({ uid, codes }, at) => touchOf(ctx, { ...planned[at]!, uid }, codes)),
    { callUid },
  );
  if (sent.some(({ outcome }) => outcome === "backpressure"))
    throw errors.touch_backpressure({ retryAfter: RETRY_AFTER });
}

/** Gives up the links of touches that nobody will get. */
export async function dropOrders(ctx: Context, touches: readonly SentTouch[]): Promise<void> {
  const codes = touches.flatMap((touch) => touch.codes);
  if (codes.length > 0) await abandonLinks(ctx, codes);
}

function plannedOf(orders: readonly Order[]): readonly Omit<Planned, "uid">[] {
  return orders.flatMap((order) => [...new Set(order.channels)].map((channel) => ({ order, channel })));
}

const uidFor = (seed: string | undefined, at: number): string =>
  seed === undefined
    ? newTouchUid()
    : `crl_tch_${createHash("sha256").update(`${seed}\n${at}`).digest("base64url").slice(0, 22)}`;

async function check(ctx: Context, orders: readonly Order[]): Promise<void> {
  const [users, points] = await Promise.all([
    getUsers(ctx, [...new Set(orders.map(({ user_sub }) => user_sub))]),
    pointsBySlug(ctx, [...new Set(orders.map((order) => order.touch_point_event_slug))]),
  ]);
  for (const order of orders) {
    if (!users.has(order.user_sub)) throw userErrors.user_not_found();
    const point = points.get(order.touch_point_event_slug);
    if (!point) throw errors.touch_point_not_found();
    checkOrder(order, point);
  }
}

export function checkOrder(order: Order, point: TouchPoint): void {
  for (const channel of order.channels)
    if (point.messages[channel].length === 0)
      throw errors.parameters_mismatch({ message: `${point.event_slug} has no message for ${channel}.` });
  for (const link of order.links) checkTarget(link);
  const places = Object.fromEntries(order.links.map(({ parameter }) => [parameter, "https://example.com/l/code"]));
  const fault = faultOfParameters(point.event_schema, { ...order.event_parameters, ...places });
  if (fault) throw errors.parameters_mismatch({ message: `The parameters do not fit ${point.event_slug}: ${fault}` });
}

/** All links of all touches with one call: their codes by touch, in the order that its order names them. */
async function makeLinks(ctx: Context, touches: readonly Planned[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const wishes = touches.flatMap(({ uid: touchUid, order }) =>
    order.links.map((link) => ({
      touchUid,
      page: { identifier: link.page_identifier, extra: link.page_extra },
      preview: { identifier: link.preview_identifier, extra: link.preview_extra },
      codeStyle: link.code_style,
    })),
  );
  const made = new Map<string, string[]>();
  for (const { touchUid, code } of wishes.length === 0 ? [] : await createLinks(ctx, wishes))
    made.set(touchUid, [...(made.get(touchUid) ?? []), code]);
  return made;
}

function touchOf(ctx: Context, { uid, order, channel }: Planned, codes: readonly string[]): NewTouch {
  const addresses = order.links.map(({ parameter }, at) => {
    const { url, shortUrl } = addressesOf(ctx, codes[at]!);
    return [parameter, channel === "sms" ? shortUrl : url];
  });
  const callbacks = codes.length === 0 ? undefined : linkCallbacks(codes);
  return {
    uid,
    userSub: order.user_sub,
    slug: order.touch_point_event_slug,
    channel,
    parameters: { ...order.event_parameters, ...Object.fromEntries(addresses) },
    successCallback: callbacks?.success ?? null,
    failureCallback: callbacks?.failure ?? failedCallback({ touchUid: uid, userSub: order.user_sub, channel }),
  };
}
