import { keys } from "../../src/messaging/push/keys.ts";
import { enqueuePushes, readSuccess } from "../../src/messaging/push/service.ts";
import { settings } from "../../src/messaging/push/settings.ts";
import type { PushMessage, PushProvider, ReceiptOutcome, TicketOutcome } from "../../src/providers/push.ts";
import { type BenchHouse, until } from "./house.ts";
import { type ChannelPlan, type ChannelRow, inGroups, measureChannel, type Size, seconds, wholeWay } from "./stage.ts";
import type { Stage, WorkerPlan } from "./worker.ts";

const SUCCESS = "runners.push.default_success";
const FAILURE = "runners.push.default_failure";
/** Milliseconds between two looks for tickets whose receipts are due, while notifications are still being sent. */
const LOOK_EVERY_MS = 50;

class InstantPush implements PushProvider {
  readonly name = "instant";

  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async send(messages: readonly PushMessage[]): Promise<TicketOutcome[]> {
    return messages.map(({ body }) => {
      const index = Number(body.slice(body.lastIndexOf(" ")));
      this.#stage.sent(index);
      return { ok: true, ticket: { status: "ok", id: `ticket-${index}`, message: null, details: null } };
    });
  }

  async receipts(ids: readonly string[]): Promise<Map<string, ReceiptOutcome>> {
    return new Map(ids.map((id) => [id, { ok: true, receipt: { status: "ok", message: null, details: null } }]));
  }
}

export const pushPlan: WorkerPlan = {
  settings: [
    [settings.maxPerSecond, 10_000_000],
    // Receipts are there at once, so their tickets need no rest.
    [settings.receiptDelay, 0],
  ],
  success: SUCCESS,
  providers: (stage) => ({ push: new InstantPush(stage) }),
};

export async function measurePush(size: Size): Promise<readonly ChannelRow[]> {
  const plan: Pick<ChannelPlan, "name" | "unit" | "kind" | "fill" | "uidIn"> = {
    name: "push",
    unit: "notifications/s",
    kind: "push",
    fill: ({ outside }, count) =>
      inGroups(count, (from, to) => {
        const pushes = Array.from({ length: to - from }, (_, at) => ({
          pushToken: `ExponentPushToken[${String(from + at).padStart(22, "0")}]`,
          contents: { title: "Good morning", body: `A minute for you ${from + at}`, channel_id: "daily" },
          failureJob: { name: FAILURE, kwargs: {} },
          successJob: { name: SUCCESS, kwargs: {} },
        }));
        return enqueuePushes(outside, pushes);
      }),
    uidIn: (story) => readSuccess(story).attempt.uid,
  };
  return [
    ...(await measureChannel(
      { ...plan, workers: 1, goals: { "queued to ticket": 20_000 }, run: oneAfterTheOther },
      size,
    )),
    ...(await measureChannel({ ...plan, workers: 2, goals: { "whole way": 20_000 }, run: allAtOnce }, size)),
  ];
}

const lookForDueTickets = ({ outside: { jobs } }: BenchHouse) =>
  jobs.nudge(jobs.runners.get("runners.push.ticket_hot_to_cold")!, {});

const unsent = async (house: BenchHouse) =>
  (await house.length(keys.toSend())) + (await house.length(keys.sendPurgatory()));

/** First all tickets, then all receipts. */
const oneAfterTheOther: ChannelPlan["run"] = async (house, count, begin) => {
  const sending = await seconds(async () => {
    await begin();
    // The cold set itself tells nothing: the schedule may begin to empty it at any time.
    await until(async () => (await unsent(house)) === 0, "all tickets");
  });
  const checking = await seconds(async () => {
    lookForDueTickets(house);
    await until(() => house.progress.heard >= count, "all receipts");
  });
  return { "queued to ticket": sending, "ticket to callback": checking };
};

/** Receipts are asked for while other notifications are still being sent, as on any busy day. */
const allAtOnce: ChannelPlan["run"] = async (house, count, begin) => {
  const looking = setInterval(() => lookForDueTickets(house), LOOK_EVERY_MS);
  try {
    return await wholeWay(house, count, begin);
  } finally {
    clearInterval(looking);
  }
};
