import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { VirtualClock } from "../kernel/clock.ts";
import { silentLog } from "../kernel/log.ts";
import { Inbox, type NewMessage } from "./inbox.ts";
import { type KnobPatch, Knobs } from "./knobs.ts";
import { isLoopback } from "./loopback.ts";
import { Sandbox } from "./sandbox.ts";

const clock = new VirtualClock();
const mail = (to: string, changes: Partial<NewMessage> = {}): NewMessage => ({
  channel: "email",
  direction: "out",
  provider: "smtp",
  provider_id: "id",
  to,
  from: null,
  subject: "Hello",
  text: "",
  moments: [{ status: "accepted", at: clock.now() }],
  fields: {},
  ...changes,
});

describe("the inbox", () => {
  it("keeps the newest, by number and by bytes", () => {
    const inbox = new Inbox(clock, 3);
    for (const to of ["a", "b", "c", "d"]) inbox.add(mail(to));
    expect(inbox.list().map(({ to }) => to)).toEqual(["d", "c", "b"]);
    const raw = Buffer.alloc(30 * 1024 * 1024);
    for (const to of ["e", "f", "g"]) inbox.add(mail(to, { raw }));
    expect(inbox.all().map(({ to }) => to)).toEqual(["f", "g"]);
  });

  it("finds by channel, receiver, subject and time", async () => {
    const inbox = new Inbox(clock);
    inbox.add(mail("ada@example.com"));
    inbox.add(mail("+15551234567", { channel: "sms", subject: null }));
    const between = clock.now();
    await clock.advance(1);
    inbox.add(mail("Ada@example.com", { subject: "Your code" }));
    const found = (filter: Parameters<Inbox["list"]>[0]) => inbox.list(filter).map(({ id }) => id);
    expect(found({ to: "ADA@" })).toEqual(["email-3", "email-1"]);
    expect(found({ channel: "sms" })).toEqual(["sms-2"]);
    expect(found({ subject: "code" })).toEqual(["email-3"]);
    expect(found({ since: between })).toEqual(["email-3"]);
    expect(found({ limit: 1 })).toEqual(["email-3"]);
  });

  it("waits for a message that fits, until the time is up", async () => {
    const inbox = new Inbox(clock);
    const waiting = inbox.wait({ to: "ada" }, 30);
    await eventually(() => clock.sleeping === 1);
    inbox.add(mail("bob"));
    inbox.add(mail("ada"));
    expect((await waiting)?.to).toBe("ada");
    const inVain = inbox.wait({ to: "eve" }, 30);
    await clock.advance(30);
    expect(await inVain).toBeUndefined();
  });

  it("shows the status that the clock has reached", async () => {
    const inbox = new Inbox(clock);
    const now = clock.now();
    const message = inbox.add(
      mail("ada", {
        moments: [
          { status: "accepted", at: now },
          { status: "delivered", at: now + 5 },
        ],
      }),
    );
    expect(inbox.statusOf(message).status).toBe("accepted");
    inbox.redirect(message, [{ status: "bounced", at: now + 10 }]);
    await clock.advance(5);
    expect(inbox.statusOf(message).status).toBe("accepted");
    await clock.advance(5);
    expect(inbox.historyOf(message).map(({ status }) => status)).toEqual(["accepted", "bounced"]);
  });
});

describe("the knobs", () => {
  it("change what is named, leave the rest, and go back to calm", () => {
    const knobs = new Knobs();
    const calm = knobs.get();
    knobs.patch({ expo: { errorRate: 0.5 }, twilio: { stuckAt: "sent" } });
    knobs.patch({ expo: { latencyMs: 5 } });
    expect(knobs.get()).toEqual({
      ...calm,
      expo: { ...calm.expo, errorRate: 0.5, latencyMs: 5 },
      twilio: { ...calm.twilio, stuckAt: "sent" },
    });
    expect(knobs.reset()).toEqual(calm);
  });

  it("refuse names and values that are none, and then change nothing", () => {
    const knobs = new Knobs();
    const calm = knobs.get();
    expect(() => knobs.patch({ expo: { errorRate: 2 } })).toThrow();
    expect(() => knobs.patch({ expo: { latencyMs: 1 }, twilio: { stuck: true } } as KnobPatch)).toThrow();
    expect(knobs.get()).toEqual(calm);
  });
});

describe("where the sandbox listens", () => {
  it("is this machine and no other address", async () => {
    const start = (host: string) => Sandbox.start({ clock, log: silentLog, host, publicUrl: "http://127.0.0.1:1" });
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "example.com"])
      await expect(start(host)).rejects.toMatchObject({ code: "sandbox_must_be_local" });
    const sandbox = await start("127.0.0.1");
    expect([new URL(sandbox.url).hostname, new URL(sandbox.smtpUrl).hostname]).toEqual(["127.0.0.1", "127.0.0.1"]);
    await sandbox.close();
    await expect(fetch(sandbox.url)).rejects.toThrow();
  });

  it("is told from names that only look like it", () => {
    for (const host of ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"])
      expect([host, isLoopback(host)]).toEqual([host, true]);
    for (const host of ["127.0.0.1.example.com", "localhost.example.com", "10.0.0.1", "", "::ffff:10.0.0.1"])
      expect([host, isLoopback(host)]).toEqual([host, false]);
  });
});

describe("an inbox on disk", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-inbox-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const start = () => Sandbox.start({ clock, log: silentLog, publicUrl: "http://127.0.0.1:9", folder, keep: 5 });
  const push = (at: Sandbox) =>
    fetch(`${at.url}/--/api/v2/push/send`, { method: "POST", body: '{"to":"ExponentPushToken[a]"}' });
  const text = (at: Sandbox) => {
    const { accountSid, authToken } = at.twilio.account;
    return fetch(`${at.url}/2010-04-01/Accounts/${accountSid}/Messages.json`, {
      method: "POST",
      headers: { authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}` },
      body: new URLSearchParams({ To: "+15551234567", Body: "Hi", MessagingServiceSid: "MG1" }),
    });
  };

  it("outlives its process, with what can be looked up, and goes on counting", async () => {
    const first = await start();
    const { data } = (await (await push(first)).json()) as { data: { id: string } };
    const { sid } = (await (await text(first)).json()) as { sid: string };
    const raw = Buffer.from("Subject: Hi\r\n\r\nBody");
    first.inbox.add(mail("ada@example.com", { raw }));
    await first.twilio.inbound({ from: "+15551234567", body: "STOP" });
    const gone = first.inbox.add(mail("gone@example.com"));
    first.inbox.remove(gone.id);
    const second = await start();
    expect(second.inbox.size).toBe(0);
    await second.close();
    await first.close();

    const third = await start();
    expect(third.inbox.all().map(({ id }) => id)).toEqual(["push-1", "sms-2", "email-3", "sms-4"]);
    expect(third.inbox.get("email-3")!.raw).toEqual(raw);
    expect(third.inbox.get("sms-4")).toMatchObject({ webhooks: [{ kind: "inbound", answered: null }] });
    expect((await text(third)).status).toBe(400);
    await clock.advance(60);
    const receipts = await fetch(`${third.url}/--/api/v2/push/getReceipts`, {
      method: "POST",
      body: JSON.stringify({ ids: [data.id] }),
    });
    expect(await receipts.json()).toEqual({ data: { [data.id]: { status: "ok" } } });
    expect(third.inbox.statusOf(third.inbox.get("sms-2")!)).toMatchObject({ status: "delivered" });
    expect(third.inbox.get("sms-2")!.provider_id).toBe(sid);
    expect(third.inbox.add(mail("new@example.com")).id).toBe("email-5");
    await third.close();
    const fourth = await start();
    expect(fourth.inbox.all().map(({ id }) => id)).toEqual(["push-1", "sms-2", "email-3", "sms-4", "email-5"]);
    fourth.inbox.clear();
    await fourth.close();
    const fifth = await start();
    expect(fifth.inbox.size).toBe(0);
    await fifth.close();
  });
});
