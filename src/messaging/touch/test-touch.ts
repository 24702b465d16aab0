import type { Context } from "../../jobs/context.ts";
import { destinationsOf } from "../contacts/service.ts";
import { enqueueMails } from "../email/service.ts";
import { enqueuePushes } from "../push/service.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS, enqueueSms } from "../sms/service.ts";
import { METHOD_OF, type TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import { faultOfParameters, type Message, type TouchPoint } from "./point.ts";
import { renderMessage } from "./render.ts";

const MOST = 3;
const PUSH_JOBS = {
  failureJob: { name: "runners.push.default_failure", kwargs: {} },
  successJob: { name: "runners.push.default_success", kwargs: {} },
};

export interface TestWish {
  readonly channel: TouchChannel;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly messageUid?: string | undefined;
}

/** Sends a message of a touch point to the one who asks, and remembers nothing of it. Answers the uids of its messages. */
export async function sendTestTouch(ctx: Context, point: TouchPoint, sub: string, wish: TestWish) {
  const { channel, parameters, messageUid } = wish;
  const candidates: readonly Message[] = point.messages[channel];
  const message = messageUid === undefined ? candidates[0] : candidates.find(({ uid }) => uid === messageUid);
  if (!message) throw errors.parameters_mismatch({ message: "The touch point has no such message for this channel." });
  const fault = faultOfParameters(point.event_schema, parameters);
  if (fault) throw errors.parameters_mismatch({ message: `The parameters do not fit: ${fault}` });
  const found = (await destinationsOf(ctx, METHOD_OF[channel], [sub])).get(sub) ?? [];
  const addresses = found.slice(0, MOST).map(({ address }) => address);
  if (addresses.length === 0) throw errors.no_destination();
  const answer = await queue(ctx, channel, renderMessage(channel, message as never, parameters), addresses);
  if (!answer.ok) throw errors.touch_backpressure({ retryAfter: 15 });
  return { uids: answer.uids };
}

function queue(
  ctx: Context,
  channel: TouchChannel,
  rendered: ReturnType<typeof renderMessage>,
  addresses: readonly string[],
): Promise<{ readonly ok: true; readonly uids: readonly string[] } | { readonly ok: false }> {
  const limit = { maxLength: 1_000 };
  if (channel === "email" && "template" in rendered)
    return enqueueMails(
      ctx,
      addresses.map((email) => ({
        email,
        subject: rendered.subject,
        template: rendered.template,
        parameters: rendered.template_parameters,
      })),
      limit,
    );
  if (channel === "push" && "title" in rendered)
    return enqueuePushes(
      ctx,
      addresses.map((pushToken) => ({ pushToken, contents: rendered, ...PUSH_JOBS })),
      limit,
    );
  const body = "body" in rendered ? rendered.body : "";
  const jobs = {
    failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
    successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
  };
  return enqueueSms(
    ctx,
    addresses.map((phoneNumber) => ({ phoneNumber, body, ...jobs })),
    limit,
  );
}
