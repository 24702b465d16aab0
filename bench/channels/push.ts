import { keys } from "../../src/messaging/push/keys.ts";
import { enqueuePushes, readSuccess } from "../../src/messaging/push/service.ts";
import { settings } from "../../src/messaging/push/settings.ts";
import type { PushMessage, PushProvider, ReceiptOutcome, TicketOutcome } from "../../src/providers/push.ts";
import { expectEachOnce, Once, openBenchHouse, until } from "./house.ts";
import { type ChannelRow, inGroups, measureChannel, type Size, seconds } from "./stage.ts";

const SUCCESS = "runners.push.default_success";
const FAILURE = "runners.push.default_failure";

class InstantPush implements PushProvider {
  readonly name = "instant";
  readonly sent = new Once();

  async send(messages: readonly PushMessage[]): Promise<TicketOutcome[]> {
    return messages.map(({ body }) => {
      const index = Number(body.slice(body.lastIndexOf(" ")));
      this.sent.note(index);
      return { ok: true, ticket: { status: "ok", id: `ticket-${index}`, message: null, details: null } };
    });
  }

  async receipts(ids: readonly string[]): Promise<Map<string, ReceiptOutcome>> {
    return new Map(ids.map((id) => [id, { ok: true, receipt: { status: "ok", message: null, details: null } }]));
  }
}

export async function measurePush(size: Size): Promise<readonly ChannelRow[]> {
  const provider = new InstantPush();
  const house = await openBenchHouse({
    push: provider,
    settings: [
      [settings.window, 500],
      [settings.maxPerSecond, 10_000_000],
      // Receipts are there at once, so their tickets need no rest.
      [settings.receiptDelay, 0],
    ],
  });
  const { jobs } = house.outside;
  const uids: string[] = [];
  const answered = () => house.heard.get(SUCCESS)?.length ?? 0;
  try {
    return await measureChannel(
      {
        name: "push",
        unit: "notifications/s",
        goals: { "queued to ticket": 20_000, "whole way": 20_000 },
        house,
        async fill(count) {
          provider.sent.expect(count);
          uids.length = 0;
          await inGroups(count, async (from, to) => {
            const pushes = Array.from({ length: to - from }, (_, at) => ({
              pushToken: `ExponentPushToken[${String(from + at).padStart(22, "0")}]`,
              contents: { title: "Good morning", body: `A minute for you ${from + at}`, channel_id: "daily" },
              failureJob: { name: FAILURE, kwargs: {} },
              successJob: { name: SUCCESS, kwargs: {} },
            }));
            const queued = await enqueuePushes(house.outside, pushes);
            if (queued.ok) uids.push(...queued.uids);
          });
        },
        async run(count, start) {
          const sending = await seconds(async () => {
            await start();
            await until(() => provider.sent.total >= count, "all notifications");
            await until(async () => (await house.length(keys.cold())) === count, "all tickets");
          });
          const checking = await seconds(async () => {
            jobs.nudge(jobs.runners.get("runners.push.ticket_hot_to_cold")!, {});
            await until(() => answered() >= count, "all receipts");
          });
          return { "queued to ticket": sending, "ticket to callback": checking, "whole way": sending + checking };
        },
        async prove() {
          provider.sent.check("notification");
          const told = house.heard.get(SUCCESS)!.map(({ data_raw }) => readSuccess(data_raw).attempt.uid);
          expectEachOnce(told, uids, "notifications");
        },
      },
      size,
    );
  } finally {
    await house.close();
  }
}
