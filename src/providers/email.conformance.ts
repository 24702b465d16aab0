import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EmailMessage, EmailProvider } from "./email.ts";

export type EmailFault = "throttle" | "server" | "rejected" | "credentials" | "reset";

/** What the suite must be able to do to whatever stands behind the provider. */
export interface EmailControl {
  /** The next mail meets this fault. */
  failNext(fault: EmailFault): void;
  /** All mails that were accepted, in order; `mime` as it arrived. */
  accepted(): readonly { readonly to: string; readonly mime: string }[];
}

export interface OpenedEmail {
  readonly provider: EmailProvider;
  readonly control: EmailControl;
  close?(): Promise<void>;
}

/** A small mail with all headers that a provider may look at. */
export function testMail(to: string, id = "1", subject = "Hello"): EmailMessage {
  const lines = [
    "From: The House <house@example.com>",
    `To: ${to}`,
    `Subject: ${subject}`,
    `Message-ID: <${id}@example.com>`,
    "Date: Thu, 24 Aug 2023 05:01:45 +0000",
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "Good morning,",
    ".a line that begins with a dot",
    "",
  ];
  return { from: "The House <house@example.com>", to, mime: Buffer.from(lines.join("\r\n")) };
}

/** What every email provider must do. Each implementation runs this suite against a back end that it can steer. */
export function emailConformance(name: string, implementation: { open(): Promise<OpenedEmail> }): void {
  describe(`${name} as an email provider`, () => {
    let opened: OpenedEmail;
    let provider: EmailProvider;
    let control: EmailControl;
    let count = 0;

    const mail = (to = `person${++count}@example.org`) => testMail(to, `conformance-${++count}`);

    beforeAll(async () => {
      opened = await implementation.open();
      ({ provider, control } = opened);
    });
    afterAll(async () => {
      await provider?.close();
      await opened?.close?.();
    });

    test(`${name} hands over a mail to its one recipient, byte for byte, under an id of its own`, async () => {
      const [first, second] = [mail(), mail()];
      const [one, two] = [await provider.send(first), await provider.send(second)];
      expect(one).toMatchObject({ ok: true, hasReceipts: provider.hasReceipts });
      expect(one.ok && two.ok && one.messageId !== two.messageId && one.messageId.length > 0).toBe(true);
      const arrived = control.accepted().slice(-2);
      expect(arrived.map(({ to }) => to)).toEqual([first.to, second.to]);
      expect(arrived[0]!.mime.trimEnd()).toBe(first.mime.toString().trimEnd());
    });

    test(`${name} sends many mails at once`, async () => {
      const before = control.accepted().length;
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => provider.send(mail())));
      expect(outcomes.filter(({ ok }) => ok)).toHaveLength(20);
      expect(
        new Set(
          control
            .accepted()
            .slice(before)
            .map(({ to }) => to),
        ).size,
      ).toBe(20);
    });

    test.each<[EmailFault, object]>([
      ["throttle", { identifier: "SESTooManyRequestsException", retryable: true, backoff: true }],
      ["server", { identifier: "SESServerError", retryable: true, backoff: true, outage: true }],
      ["rejected", { identifier: "SESClientError", retryable: false }],
      ["credentials", { identifier: "SESClientError", credentials: true }],
      ["reset", { identifier: "SESNetworkError", retryable: true, backoff: true, outage: true }],
    ])(`${name} classifies the fault %s, and goes on afterwards`, async (fault, expected) => {
      const before = control.accepted().length;
      control.failNext(fault);
      const outcome = await provider.send(mail());
      expect(outcome).toMatchObject({ ok: false, subidentifier: expect.stringMatching(/./), ...expected });
      expect(control.accepted()).toHaveLength(before);
      expect(await provider.send(mail())).toMatchObject({ ok: true });
    });

    test(`${name} works on after a reset`, async () => {
      await provider.reset();
      expect(await provider.send(mail())).toMatchObject({ ok: true });
    });
  });
}
