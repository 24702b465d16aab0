import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SmsProvider, smsCategory } from "./sms.ts";

/** What the suite must be able to do to whatever stands behind the provider. */
export interface SmsControl {
  /** The next request is answered with this status, and with this code of the provider's own; null: without one. */
  failNext(status: number, code: number | null): void;
  /** The next message is created and the answer cut off. */
  dropNext(): void;
  /** Messages to this number end so, from now on. */
  endAs(number: string, status: string, code?: number): void;
  /** Lets so much time pass that every message has reached its end. */
  finish(): Promise<void> | void;
  /** The provider forgets a message. */
  forget(sid: string): void;
  /** All messages that were created, in order. */
  created(): readonly { readonly to: string; readonly body: string }[];
  /** Unix seconds by the clock of the back end. */
  now(): number;
}

export interface OpenedSms {
  readonly provider: SmsProvider;
  readonly control: SmsControl;
  close?(): Promise<void>;
}

/** What every provider of text messages must do. Each implementation runs this suite against a back end it can steer. */
export function smsConformance(name: string, implementation: { open(): Promise<OpenedSms> }): void {
  describe(`${name} as a provider of text messages`, () => {
    let opened: OpenedSms;
    let provider: SmsProvider;
    let control: SmsControl;
    let count = 0;

    const number = () => `+1202555${String(++count).padStart(4, "0")}`;
    const create = async (to = number(), body = "Time for your class") => {
      const outcome = await provider.create({ to, body });
      if (!outcome.ok) throw new Error(`not created: ${JSON.stringify(outcome)}`);
      return outcome;
    };

    beforeAll(async () => {
      opened = await implementation.open();
      ({ provider, control } = opened);
    });
    afterAll(() => opened?.close?.());

    test(`${name} creates a message that is pending and can be fetched`, async () => {
      const to = number();
      const { state, resource } = await create(to, "Grüße & +1 🎉");
      expect(state).toBe("pending");
      expect(control.created().at(-1)).toEqual({ to, body: "Grüße & +1 🎉" });
      const fetched = await provider.fetch(resource.sid);
      expect(fetched).toMatchObject({ ok: true, resource: { sid: resource.sid, errorCode: null } });
    });

    test(`${name} tells of success in the end`, async () => {
      const { resource } = await create();
      await control.finish();
      const fetched = await provider.fetch(resource.sid);
      expect(fetched.ok && smsCategory(fetched.resource.status)).toBe("success");
      expect(fetched.ok && fetched.resource.dateUpdated).toBeGreaterThan(0);
    });

    test(`${name} tells of failure with its code as text`, async () => {
      const to = number();
      control.endAs(to, "undelivered", 30003);
      const { resource } = await create(to);
      await control.finish();
      expect(await provider.fetch(resource.sid)).toMatchObject({
        ok: true,
        resource: { status: "undelivered", errorCode: "30003" },
      });
    });

    test(`${name} says that a message it no longer knows is not found`, async () => {
      const { resource } = await create();
      control.forget(resource.sid);
      expect(await provider.fetch(resource.sid)).toMatchObject({
        ok: false,
        identifier: "ClientError404",
        retryable: false,
      });
    });

    test(`${name} finds the messages to a number again, the newest first`, async () => {
      const [to, since] = [number(), control.now()];
      const first = await create(to, "one");
      await control.finish();
      const second = await create(to, "two");
      await create(number(), "to somebody else");
      const listed = await provider.list({ to, since: Math.floor(since) });
      expect(listed.ok && listed.messages.map(({ sid, body }) => [sid, body])).toEqual([
        [second.resource.sid, "two"],
        [first.resource.sid, "one"],
      ]);
      const later = await provider.list({ to, since: control.now() + 60 });
      expect(later).toEqual({ ok: true, messages: [] });
    });

    test(`${name} does not know whether a message was created whose answer was cut off, but finds it`, async () => {
      const [to, since] = [number(), control.now()];
      control.dropNext();
      expect(await provider.create({ to, body: "lost" })).toMatchObject({
        ok: false,
        identifier: "NetworkError",
        retryable: true,
        backoff: true,
        outage: true,
      });
      const listed = await provider.list({ to, since: Math.floor(since) });
      expect(listed.ok && listed.messages.map(({ body }) => body)).toEqual(["lost"]);
    });

    test.each<[number, number | null, object]>([
      [500, null, { identifier: "ServerError", subidentifier: "500", retryable: true, backoff: true, outage: true }],
      [503, 20503, { identifier: "ServerError", subidentifier: "503", retryable: true, backoff: true, outage: true }],
      [429, 20429, { identifier: "ApplicationErrorRatelimit", subidentifier: "20429", retryable: true, backoff: true }],
      [400, 30022, { identifier: "ApplicationErrorRatelimit", subidentifier: "30022", retryable: true, backoff: true }],
      [400, 21610, { identifier: "ApplicationErrorOther", subidentifier: "21610", retryable: false }],
      [429, null, { identifier: "ClientError429", subidentifier: null, retryable: true, backoff: true }],
      [400, null, { identifier: "ClientErrorOther", subidentifier: "400", retryable: false, backoff: true }],
      [401, 20003, { identifier: "ApplicationErrorOther", subidentifier: "20003", credentials: true }],
      [403, null, { identifier: "ClientErrorOther", subidentifier: "403", credentials: true }],
    ])(`${name} classifies a create answered with %i and code %s`, async (status, code, expected) => {
      const before = control.created().length;
      control.failNext(status, code);
      expect(await provider.create({ to: number(), body: "x" })).toMatchObject({ ok: false, ...expected });
      expect(control.created()).toHaveLength(before);
    });

    test.each<[number, number | null, object]>([
      [429, 20429, { identifier: "ClientError429", retryable: true, backoff: true }],
      [500, null, { identifier: "ServerError", retryable: true, backoff: true, outage: true }],
      [400, null, { identifier: "ClientErrorOther", retryable: false }],
      [401, 20003, { identifier: "ClientErrorOther", credentials: true }],
    ])(`${name} classifies a look-up answered with %i and code %s`, async (status, code, expected) => {
      const { resource } = await create();
      control.failNext(status, code);
      expect(await provider.fetch(resource.sid)).toMatchObject({ ok: false, ...expected });
      control.failNext(status, code);
      expect(await provider.list({ to: number(), since: 0 })).toMatchObject({ ok: false, ...expected });
    });
  });
}
