import type { Context } from "../../jobs/context.ts";
import { calendarOf } from "../../mechanisms/dated-counters/index.ts";
import type { KnobPatch } from "../../sandbox/knobs.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Crowd } from "./crowd.ts";
import type { Gap } from "./days.ts";

const HOUR = 3600;
const SUNDAY = 0;
/** Hours of the statistics day at which the app writes to everybody. */
const SUMMARY_AT = 10;
const CAMPAIGN_AT = 9;
const SUPPORT_AT = 14;
/** When the provider of texts was away on the bad day. */
const OUTAGE = { from: 7, until: 13 };

/** A few things always go wrong: a provider is busy, a number is out of service, a mailbox is full. */
const ORDINARY: KnobPatch = {
  expo: { faultRates: { "503": 0.01 }, messageFaultRates: { receipt_error: 0.004 } },
  twilio: { faultRates: { "429": 0.01, "500": 0.01 }, messageFaultRates: { undelivered: 0.012, failed: 0.004 } },
  ses: {
    fault_rates: { throttle: 0.01, "503": 0.01 },
    mail_fault_rates: { bounce: 0.006, complaint: 0.001, ooto: 0.01 },
  },
};
const BAD: KnobPatch = {
  twilio: { faultRates: { "500": 0.25, "503": 0.15 }, messageFaultRates: { undelivered: 0.15, failed: 0.05 } },
};

interface Occasion {
  readonly at: number;
  /** Lasts until the next of its kind. */
  readonly isWeather?: true;
  happen(): Promise<void> | void;
}

/** What happens in a month besides what people do: summaries on Sundays, one campaign, one bad day of one provider. */
export class Month {
  readonly #occasions: Occasion[];

  constructor(house: { readonly ctx: Context; readonly sandbox: Sandbox; readonly crowd: Crowd }, gap: Gap) {
    const { ctx, crowd } = house;
    const { knobs } = house.sandbox;
    const calendar = calendarOf(ctx);
    const length = gap.to - gap.from + 1;
    const [badDay, campaign] = [gap.from + Math.floor(length * 0.4), gap.from + Math.floor(length * 0.7)];
    const occasions: Occasion[] = [];
    for (let date = gap.from; date <= gap.to; date++) {
      const hour = (hours: number) => calendar.startOf(date) + hours * HOUR;
      const isBad = date === badDay && length > 4;
      occasions.push({
        at: hour(0),
        isWeather: true,
        happen() {
          knobs.reset();
          knobs.patch(isBad ? { ...ORDINARY, ...BAD } : ORDINARY);
          if (isBad) knobs.patch({ twilio: { outage: { from: hour(OUTAGE.from), until: hour(OUTAGE.until) } } });
        },
      });
      if (date === campaign && length > 4)
        occasions.push({
          at: hour(CAMPAIGN_AT),
          happen: () => crowd.tellAll("ten_day_challenge", { everywhere: true }),
        });
      // Midnight of a calendar day in UTC has the weekday that the day has everywhere.
      if (weekdayOf(date) === SUNDAY)
        occasions.push({
          at: hour(SUMMARY_AT),
          happen: () => crowd.tellAll("weekly_summary", { everywhere: false, channels: ["email", "push"] }),
        });
      if (date % 3 === 0) occasions.push({ at: hour(SUPPORT_AT), happen: () => crowd.support() });
    }
    this.#occasions = occasions.sort((one, other) => one.at - other.at);
  }

  get next(): number | undefined {
    return this.#occasions[0]?.at;
  }

  /** What was to happen until then has happened; only the weather of that day goes on. */
  passOver(until: number): void {
    const over = this.#occasions.filter(({ at }) => at <= until);
    this.#occasions.splice(0, over.length);
    void over.findLast(({ isWeather }) => isWeather)?.happen();
  }

  async happenUntil(now: number): Promise<void> {
    while (this.#occasions[0] && this.#occasions[0].at <= now) await this.#occasions.shift()!.happen();
  }
}

/** 1970-01-01 was a Thursday. */
const weekdayOf = (unixDate: number) => (unixDate + 4) % 7;
