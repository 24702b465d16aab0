import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { destinationsOf } from "../contacts/service.ts";
import { enqueueMails } from "../email/service.ts";
import { enqueuePushes, type PushesQueued } from "../push/service.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS, type EnqueueAnswer, enqueueSms } from "../sms/service.ts";
import { METHOD_OF, TOUCH_CHANNELS, type TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import { faultOfParameters, type Message } from "./point.ts";
import { pointByUid } from "./point-store.ts";
import { renderMessage } from "./render.ts";

const MOST = 3;
/** Tests step aside when a channel has much to do. */
const LONGEST_QUEUE = 1_000;
const RETRY_AFTER = 15;
const PUSH_JOBS = {
  failureJob: { name: "runners.push.default_failure", kwargs: {} },
  successJob: { name: "runners.push.default_success", kwargs: {} },
};

/** A message of a touch point that somebody sends to themselves, to see it as people do. */
export const TestTouch = z.strictObject({
  touch_point_uid: z.string().min(1).max(200),
  user_sub: z.string().min(1).max(255),
  channel: z.enum(TOUCH_CHANNELS),
  event_parameters: z.record(z.string(), z.unknown()),
  message_uid: z.string().max(200).optional(),
});
export type TestTouch = z.output<typeof TestTouch>;

/** What a test says and where it goes; refused is what could not be sent, where somebody hears of it. */
export async function planTest(ctx: Context, wish: TestTouch) {
  const { channel, event_parameters: parameters, message_uid: messageUid, user_sub: sub } = wish;
  const point = await pointByUid(ctx, wish.touch_point_uid);
  const candidates: readonly Message[] = point.messages[channel];
  const message = messageUid === undefined ? candidates[0] : candidates.find(({ uid }) => uid === messageUid);
  if (!message) throw errors.parameters_mismatch({ message: "The touch point has no such message for this channel." });
  const fault = faultOfParameters(point.event_schema, parameters);
  if (fault) throw errors.parameters_mismatch({ message: `The parameters do not fit: ${fault}` });
  const found = (await destinationsOf(ctx, METHOD_OF[channel], [sub])).get(sub) ?? [];
  const addresses = found.slice(0, MOST).map(({ address }) => address);
  if (addresses.length === 0) throw errors.no_destination();
  return { rendered: renderMessage(channel, message as never, parameters), addresses };
}

/**
 * Gives the messages of a test to their channel, and remembers nothing of it. Answers their uids; none for a repeat with
 * the same `callUid`, which adds no message.
 */
export async function sendTestTouch(
  ctx: Context,
  wish: TestTouch,
  callUid: string | undefined,
): Promise<readonly string[]> {
  const { rendered, addresses } = await planTest(ctx, wish);
  const answer = await queue(ctx, wish.channel, rendered, addresses, callUid);
  if (answer.ok) return "duplicate" in answer && answer.duplicate ? [] : answer.uids;
  if (answer.reason === "duplicate") return [];
  throw errors.touch_backpressure({ retryAfter: RETRY_AFTER });
}

function queue(
  ctx: Context,
  channel: TouchChannel,
  rendered: ReturnType<typeof renderMessage>,
  addresses: readonly string[],
  callUid: string | undefined,
): Promise<PushesQueued | EnqueueAnswer> {
  const options = { maxLength: LONGEST_QUEUE, ...(callUid === undefined ? {} : { callUid }) };
  if (channel === "email" && "template" in rendered)
    return enqueueMails(
      ctx,
      addresses.map((email) => ({
        email,
        subject: rendered.subject,
        template: rendered.template,
        parameters: rendered.template_parameters,
      })),
      options,
    );
  if (channel === "push" && "title" in rendered)
    return enqueuePushes(
      ctx,
      addresses.map((pushToken) => ({ pushToken, contents: rendered, ...PUSH_JOBS })),
      options,
    );
  const body = "body" in rendered ? rendered.body : "";
  const jobs = {
    failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
    successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
  };
  return enqueueSms(
    ctx,
    addresses.map((phoneNumber) => ({ phoneNumber, body, ...jobs })),
    options,
  );
}
