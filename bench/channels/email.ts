import { systemClock } from "../../src/kernel/clock.ts";
import { keys } from "../../src/messaging/email/keys.ts";
import { enqueueMails, type NewMail, readSuccess } from "../../src/messaging/email/service.ts";
import { settings } from "../../src/messaging/email/settings.ts";
import { book } from "../../src/messaging/email_templates/service.ts";
import type { EmailMessage, EmailOutcome, EmailProvider } from "../../src/providers/email.ts";
import type { BenchHouse } from "./house.ts";
import { type ChannelRow, inGroups, measureChannel, type Size, wholeWay } from "./stage.ts";
import type { Stage, WorkerPlan } from "./worker.ts";

const SUCCESS = "runners.emails.default_success";
export const TEMPLATE = "dailyReminder";
/** Without a page of its own for leaving: the house makes the link, as for nearly all mails. */
const { unsubscribeUrl: _, ...example } = book.get(TEMPLATE).examples[0] as Record<string, string>;
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

/** The number of a mail of the campaign. It is looked at so far that an empty one would be seen. */
export function indexOf(to: string, mime: Uint8Array): number | undefined {
  if (mime.length < 500) throw new Error(`the mail to ${to} has only ${mime.length} bytes`);
  return to.startsWith("ada") ? Number(to.slice(3, to.indexOf("@"))) : undefined;
}

/** Takes whole mails, answers at once, and reports on them later or, as a mail server does, never. */
class InstantEmail implements EmailProvider {
  readonly name = "instant";
  readonly hasReceipts: boolean;

  readonly #stage: Stage;

  constructor(stage: Stage, hasReceipts: boolean) {
    this.#stage = stage;
    this.hasReceipts = hasReceipts;
  }

  async send({ to, mime }: EmailMessage): Promise<EmailOutcome> {
    const index = indexOf(to, mime);
    if (index === undefined) this.#stage.other(to);
    else this.#stage.sent(index);
    const messageId = index === undefined ? to : `mail-${index}`;
    if (this.hasReceipts)
      this.#stage.report(
        `{"message_id":"${messageId}","notification":{"type":"Delivery"},"received_at":${systemClock.now()}}`,
      );
    return { ok: true, messageId, hasReceipts: this.hasReceipts };
  }

  async quota() {
    return { maxPerSecond: 10_000_000, max24h: 1e12, sent24h: 0, sendingEnabled: true };
  }
  async reset() {}
  async close() {}
}

const plan = (own: WorkerPlan["settings"], hasReceipts = true): WorkerPlan => ({
  settings: own,
  success: SUCCESS,
  ...(hasReceipts ? { news: { list: keys.event(), job: "runners.emails.receipt_reconciliation" } } : {}),
  providers: (stage) => ({ email: new InstantEmail(stage, hasReceipts) }),
});
/** Far above what a machine of this size sends. */
const UNPACED = [settings.maxPerSecond, 10_000_000] as const;

const CAMPAIGN: WorkerPlan["settings"] = [
  [settings.window, 450],
  [settings.claimSize, 500],
  [settings.newsSize, 500],
  UNPACED,
];
export const mailsPlan = plan(CAMPAIGN);
/** As through a mail server: nothing is heard of a mail after it was taken. */
export const mailsAtOncePlan = plan(CAMPAIGN, false);
/** Everything as it is without configuration, but for the pace. */
export const codesPlan = plan([UNPACED]);
export const pacedCodesPlan = plan([]);

export const fillWithMails = ({ outside }: BenchHouse, count: number): Promise<readonly string[]> =>
  inGroups(count, (from, to) =>
    enqueueMails(
      outside,
      Array.from({ length: to - from }, (_, at) => mailOf(from + at)),
    ),
  );

export async function measureEmail(size: Size): Promise<readonly ChannelRow[]> {
  const rows: ChannelRow[] = [];
  for (const workers of [1, 2])
    rows.push(
      ...(await measureChannel(
        {
          name: "email",
          unit: "mails/s",
          kind: "mails",
          workers,
          goals: workers === 2 ? { "whole way": 8_000 } : {},
          fill: fillWithMails,
          run: wholeWay,
          uidIn: (story) => readSuccess(story).email.uid,
        },
        size,
      )),
    );
  return rows;
}
