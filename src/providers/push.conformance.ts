import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PushMessage, PushProvider } from "./push.ts";

/** What the suite must be able to do to whatever stands behind the provider. */
export interface PushControl {
  /** The next request is answered with this status. */
  failNext(status: number): void;
  /** The next send is accepted and its answer cut off. */
  dropNext(): void;
  /** The answer to the next request cannot be used. */
  malformNext(how: "json" | "structure" | "count"): void;
  /** Tickets for this token carry this error from now on. */
  ticketError(token: string, name: string): void;
  /** Receipts for messages to this token carry this error from now on. */
  receiptError(token: string, name: string): void;
  receiptNever(token: string): void;
  /** Lets so much time pass that receipts are there. */
  receiptsReady(): Promise<void> | void;
  /** Tokens of all messages that were accepted, in order. */
  accepted(): readonly string[];
}

export interface OpenedPush {
  readonly provider: PushProvider;
  readonly control: PushControl;
  close?(): Promise<void>;
}

/** What every push provider must do. Each implementation runs this suite against a back end that it can steer. */
export function pushConformance(name: string, implementation: { open(): Promise<OpenedPush> }): void {
  describe(`${name} as a push provider`, () => {
    let opened: OpenedPush;
    let provider: PushProvider;
    let control: PushControl;
    let count = 0;

    const message = (token = `ExponentPushToken[conformance-${++count}]`): PushMessage => ({
      to: token,
      title: "Good morning",
      body: "Time for your class",
      channelId: "default",
    });
    const ticketFor = async (token: string): Promise<string> => {
      const [outcome] = await provider.send([message(token)]);
      if (!outcome?.ok) throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
      return outcome.ticket.id;
    };

    beforeAll(async () => {
      opened = await implementation.open();
      ({ provider, control } = opened);
    });
    afterAll(() => opened?.close?.());

    test(`${name} gives every message of a full batch a ticket of its own, in order`, async () => {
      const before = control.accepted().length;
      const messages = Array.from({ length: 100 }, () => message());
      const outcomes = await provider.send(messages);
      const ids = outcomes.map((outcome) => (outcome.ok ? outcome.ticket.id : outcome.identifier));
      expect(new Set(ids).size).toBe(100);
      expect(outcomes.every(({ ok }) => ok)).toBe(true);
      expect(control.accepted().slice(before)).toEqual(messages.map(({ to }) => to));
    });

    test(`${name} asks nobody about nothing and refuses more than a batch`, async () => {
      const before = control.accepted().length;
      expect(await provider.send([])).toEqual([]);
      expect(await provider.receipts([])).toEqual(new Map());
      await expect(provider.send(Array.from({ length: 101 }, () => message()))).rejects.toThrow(RangeError);
      const ids = Array.from({ length: 1001 }, (_, at) => `id-${at}`);
      await expect(provider.receipts(ids)).rejects.toThrow(RangeError);
      expect(control.accepted()).toHaveLength(before);
    });

    test(`${name} fails one unregistered device and sends to the others`, async () => {
      const gone = message();
      control.ticketError(gone.to, "DeviceNotRegistered");
      const outcomes = await provider.send([message(), gone, message()]);
      expect(outcomes.map(({ ok }) => ok)).toEqual([true, false, true]);
      expect(outcomes[1]).toMatchObject({
        identifier: "DeviceNotRegistered",
        retryable: false,
        ticket: { status: "error", details: { error: "DeviceNotRegistered" } },
      });
    });

    test(`${name} says that a receipt is not there yet, and gives it when it is`, async () => {
      const never = message().to;
      control.receiptNever(never);
      const [early, missing] = [await ticketFor(message().to), await ticketFor(never)];
      const first = await provider.receipts([early, missing]);
      expect(first.get(missing)).toMatchObject({ ok: false, identifier: "NotReadyYet", retryable: true });
      await control.receiptsReady();
      const later = await provider.receipts([early, missing, early]);
      expect([...later.keys()].sort()).toEqual([early, missing].sort());
      expect(later.get(early)).toMatchObject({ ok: true, receipt: { status: "ok" } });
      expect(later.get(missing)).toMatchObject({ ok: false, identifier: "NotReadyYet", retryable: true });
    });

    test.each([
      "DeviceNotRegistered",
      "MessageTooBig",
      "MessageRateExceeded",
      "MismatchSenderId",
      "InvalidCredentials",
    ])(`${name} names the receipt error %s`, async (error) => {
      const { to } = message();
      control.receiptError(to, error);
      const id = await ticketFor(to);
      await control.receiptsReady();
      expect((await provider.receipts([id])).get(id)).toMatchObject({
        ok: false,
        identifier: error,
        retryable: false,
        receipt: { status: "error", details: { error } },
      });
    });

    test.each([
      [429, { identifier: "ClientError429", retryable: true, extra: "hard", backoff: true }],
      [400, { identifier: "ClientErrorOther", retryable: false, extra: "400" }],
      [401, { identifier: "ClientErrorOther", credentials: true, extra: "401" }],
      [403, { identifier: "ClientErrorOther", credentials: true, extra: "403" }],
      [500, { identifier: "ServerError", retryable: true, extra: "500", backoff: true, outage: true }],
      [503, { identifier: "ServerError", retryable: true, extra: "503", backoff: true, outage: true }],
    ])(`${name} gives the whole request one fate when the answer is %i`, async (status, expected) => {
      control.failNext(status);
      const outcomes = await provider.send([message(), message()]);
      expect(outcomes).toEqual([
        expect.objectContaining({ ok: false, ...expected }),
        expect.objectContaining({ ok: false, ...expected }),
      ]);
      control.failNext(status);
      expect((await provider.receipts(["some-id"])).get("some-id")).toMatchObject({ ok: false, ...expected });
    });

    test(`${name} does not know what became of messages whose answer was cut off`, async () => {
      const lost = message();
      control.dropNext();
      const [outcome] = await provider.send([lost]);
      expect(outcome).toMatchObject({ ok: false, identifier: "NetworkError", retryable: true, outage: true });
      expect(control.accepted()).toContain(lost.to);
    });

    test.each(["json", "structure", "count"] as const)(
      `${name} takes a malformed answer (%s) as final`,
      async (how) => {
        control.malformNext(how);
        const outcomes = await provider.send([message(), message()]);
        expect(outcomes).toHaveLength(2);
        for (const outcome of outcomes)
          expect(outcome).toMatchObject({ identifier: "InternalError", retryable: false });
      },
    );
  });
}
