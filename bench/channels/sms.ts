import { systemClock } from "../../src/kernel/clock.ts";
import { smsEvent } from "../../src/messaging/sms/entries.ts";
import { keys } from "../../src/messaging/sms/keys.ts";
import { DEFAULT_FAILURE, DEFAULT_SUCCESS, enqueueSms, readSuccess } from "../../src/messaging/sms/service.ts";
import { settings } from "../../src/messaging/sms/settings.ts";
import type { SmsFetchOutcome, SmsListOutcome, SmsOutcome, SmsProvider } from "../../src/providers/sms.ts";
import { type ChannelRow, inGroups, measureChannel, type Size, wholeWay } from "./stage.ts";
import type { Stage, WorkerPlan } from "./worker.ts";

/** Says at once that a text is on its way, or afterwards, by its webhook. */
class InstantSms implements SmsProvider {
  readonly name = "instant";

  readonly #stage: Stage;
  readonly #reports: boolean;

  constructor(stage: Stage, reports: boolean) {
    this.#stage = stage;
    this.#reports = reports;
  }

  async create({ body }: { to: string; body: string }): Promise<SmsOutcome> {
    const index = Number(body.slice(body.lastIndexOf(" ")));
    this.#stage.sent(index);
    const sid = `SM${index.toString(16).padStart(32, "0")}`;
    const resource = { sid, errorCode: null, errorMessage: null, dateUpdated: null };
    if (!this.#reports) return { ok: true, state: "succeeded", resource: { ...resource, status: "sent" } };
    this.#stage.report(
      smsEvent.encode({
        sid,
        status: "sent",
        error_code: null,
        error_message: null,
        date_updated: null,
        information_received_at: systemClock.now(),
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

export const textsAtOncePlan: WorkerPlan = {
  settings: [[settings.window, 500]],
  success: DEFAULT_SUCCESS,
  providers: (stage) => ({ sms: new InstantSms(stage, false) }),
};

export const textsByReceiptPlan: WorkerPlan = {
  ...textsAtOncePlan,
  news: { list: keys.event(), job: "runners.sms.receipt_reconciliation" },
  providers: (stage) => ({ sms: new InstantSms(stage, true) }),
};

export async function measureSms(size: Size): Promise<readonly ChannelRow[]> {
  const rows: ChannelRow[] = [];
  for (const end of ["at once", "by receipt"] as const)
    for (const workers of [1, 2])
      rows.push(
        ...(await measureChannel(
          {
            name: `SMS, sent ${end}`,
            unit: "texts/s",
            kind: `texts ${end}`,
            workers,
            goals: workers === 2 ? { "whole way": 8_000 } : {},
            fill: ({ outside }, count) => inGroups(count, (from, to) => enqueueSms(outside, textsOf(from, to))),
            run: wholeWay,
            uidIn: (story) => readSuccess(story).sms.uid,
          },
          size,
        )),
      );
  return rows;
}

const textsOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({
    phoneNumber: `+1415${String(from + at).padStart(7, "0")}`,
    body: `Time to breathe ${from + at}`,
    failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
    successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
  }));
