import { systemClock } from "../../src/kernel/clock.ts";
import { smsEvent } from "../../src/messaging/sms/entries.ts";
import { keys } from "../../src/messaging/sms/keys.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS, enqueueSms, readSuccess } from "../../src/messaging/sms/service.ts";
import { settings } from "../../src/messaging/sms/settings.ts";
import type { SmsFetchOutcome, SmsListOutcome, SmsOutcome, SmsProvider } from "../../src/providers/sms.ts";
import { expectEachOnce, Once, openBenchHouse, until } from "./house.ts";
import { News } from "./news.ts";
import { type ChannelRow, inGroups, measureChannel, type Size, seconds } from "./stage.ts";

class InstantSms implements SmsProvider {
  readonly name = "instant";
  readonly sent = new Once();
  news: News | undefined;

  async create({ body }: { to: string; body: string }): Promise<SmsOutcome> {
    const index = Number(body.slice(body.lastIndexOf(" ")));
    this.sent.note(index);
    const sid = `SM${index.toString(16).padStart(32, "0")}`;
    const resource = { sid, errorCode: null, errorMessage: null, dateUpdated: null };
    if (!this.news) return { ok: true, state: "succeeded", resource: { ...resource, status: "sent" } };
    const now = systemClock.now();
    this.news.report(
      smsEvent.encode({
        sid,
        status: "sent",
        error_code: null,
        error_message: null,
        date_updated: null,
        information_received_at: now,
        received_via: "webhook",
      }),
    );
    return { ok: true, state: "pending", resource: { ...resource, status: "queued" } };
  }

  async fetch(): Promise<SmsFetchOutcome> {
    throw new Error("nothing is silent for so long that it is asked about");
  }

  async list(): Promise<SmsListOutcome> {
    throw new Error("nothing is in doubt");
  }
}

export async function measureSms(size: Size): Promise<readonly ChannelRow[]> {
  return [...(await measureWay(size, "at once")), ...(await measureWay(size, "by receipt"))];
}

/** Texts whose provider says at once that they are on their way, or afterwards, by its webhook. */
async function measureWay(size: Size, end: "at once" | "by receipt"): Promise<readonly ChannelRow[]> {
  const provider = new InstantSms();
  const house = await openBenchHouse({ sms: provider, settings: [[settings.window, 500]] });
  if (end === "by receipt") provider.news = new News(house, keys.event(), "runners.sms.receipt_reconciliation");
  const uids: string[] = [];
  const job = (name: string) => ({ name, kwargs: {} });
  try {
    return await measureChannel(
      {
        name: `SMS, sent ${end}`,
        unit: "texts/s",
        goals: { "whole way": 8_000 },
        house,
        async fill(count) {
          provider.sent.expect(count);
          uids.length = 0;
          await inGroups(count, async (from, to) => {
            const texts = Array.from({ length: to - from }, (_, at) => ({
              phoneNumber: `+1415${String(from + at).padStart(7, "0")}`,
              body: `Time to breathe ${from + at}`,
              failureJob: job(DEFAULT_FAILURE),
              successJob: job(DEFAULT_SUCCESS),
            }));
            const queued = await enqueueSms(house.outside, texts);
            if (queued.ok) uids.push(...queued.uids);
          });
        },
        async run(count, start) {
          const answered = () => house.heard.get(DEFAULT_SUCCESS)?.length ?? 0;
          const whole = await seconds(async () => {
            await start();
            await until(() => answered() >= count, "all callbacks");
          });
          return { "whole way": whole };
        },
        async prove() {
          provider.sent.check("text");
          const told = house.heard.get(DEFAULT_SUCCESS)!.map(({ data_raw }) => readSuccess(data_raw).sms.uid);
          expectEachOnce(told, uids, "texts");
        },
      },
      size,
    );
  } finally {
    await house.close();
  }
}
