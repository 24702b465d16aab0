import { systemClock } from "../../src/kernel/clock.ts";
import { newsEntry } from "../../src/messaging/email/entries.ts";
import { keys } from "../../src/messaging/email/keys.ts";
import { enqueueMails, type NewMail, readSuccess } from "../../src/messaging/email/service.ts";
import { settings } from "../../src/messaging/email/settings.ts";
import { book } from "../../src/messaging/email_templates/service.ts";
import type { EmailMessage, EmailOutcome, EmailProvider } from "../../src/providers/email.ts";
import { expectEachOnce, Once, openBenchHouse, until } from "./house.ts";
import { News } from "./news.ts";
import { type ChannelRow, inGroups, measureChannel, type Size, seconds } from "./stage.ts";

export const SUCCESS = "runners.emails.default_success";
export const TEMPLATE = "dailyReminder";
const example = book.get(TEMPLATE).examples[0] as Record<string, string>;
export const addressOf = (index: number) => `ada${index}@example.com`;
export const parametersOf = (index: number) => ({
  ...example,
  name: `Ada ${index}`,
  url: `https://app.example.com/l/${index}`,
});
export const mailOf = (index: number): NewMail => ({
  email: addressOf(index),
  template: TEMPLATE,
  parameters: parametersOf(index),
});

/** Takes whole mails and answers at once; what Carillon and its peer send through. */
export class InstantEmail implements EmailProvider {
  readonly name = "instant";
  readonly hasReceipts = true;
  readonly sent = new Once();
  news: News | undefined;
  /** Hears of mails that are not of the campaign, such as sign-in codes. */
  onOther: (to: string) => void = () => {};

  /** The mail itself is looked at so far that an empty one would be seen. */
  take(to: string, mime: Uint8Array): string {
    if (mime.length < 500) throw new Error(`the mail to ${to} has only ${mime.length} bytes`);
    const index = to.startsWith("ada") ? Number(to.slice(3, to.indexOf("@"))) : undefined;
    if (index === undefined) {
      this.onOther(to);
      return to;
    }
    this.sent.note(index);
    return `mail-${index}`;
  }

  async send({ to, mime }: EmailMessage): Promise<EmailOutcome> {
    const messageId = this.take(to, mime);
    this.news?.report(
      newsEntry.encode({ message_id: messageId, notification: { type: "Delivery" }, received_at: systemClock.now() }),
    );
    return { ok: true, messageId, hasReceipts: true };
  }

  async quota() {
    return { maxPerSecond: 10_000_000, max24h: 1e12, sent24h: 0, sendingEnabled: true };
  }
  async reset() {}
  async close() {}
}

export async function measureEmail(size: Size): Promise<readonly ChannelRow[]> {
  const provider = new InstantEmail();
  const house = await openBenchHouse({
    email: provider,
    settings: [
      [settings.window, 500],
      [settings.claimSize, 500],
      [settings.maxPerSecond, 10_000_000],
    ],
  });
  provider.news = new News(house, keys.event(), "runners.emails.receipt_reconciliation");
  const uids: string[] = [];
  try {
    return await measureChannel(
      {
        name: "email",
        unit: "mails/s",
        goals: { "whole way": 8_000 },
        house,
        async fill(count) {
          provider.sent.expect(count);
          uids.length = 0;
          await inGroups(count, async (from, to) => {
            const mails = Array.from({ length: to - from }, (_, at) => mailOf(from + at));
            const queued = await enqueueMails(house.outside, mails);
            if (queued.ok) uids.push(...queued.uids);
          });
        },
        async run(count, start) {
          const answered = () => house.heard.get(SUCCESS)?.length ?? 0;
          const whole = await seconds(async () => {
            await start();
            await until(() => answered() >= count, "all callbacks");
          });
          return { "whole way": whole };
        },
        async prove() {
          provider.sent.check("mail");
          const told = house.heard.get(SUCCESS)!.map(({ data_raw }) => readSuccess(data_raw).email.uid);
          expectEachOnce(told, uids, "mails");
        },
      },
      size,
    );
  } finally {
    await house.close();
  }
}
