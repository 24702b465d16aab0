import fc from "fast-check";
import { expect, test } from "vitest";
import { smsCategory } from "../../providers/sms.ts";
import type { PendingSms, SmsEvent } from "./entries.ts";
import { type EventVerdict, judge } from "./verdict.ts";

const SID = `SM${"0".repeat(32)}`;
const NOW = 1_000_000;
const bench = { now: NOW, silence: 900, unreachableCodes: new Set(["30005"]) };
const RANKS = ["accepted", "scheduled", "queued", "sending"];
const WAY = [...RANKS, "sent", "delivered", "undelivered", "failed", "lost", "pondering"];

const job = { name: "runners.sms.default_success", kwargs: {} };
const pending = (status: string, dateUpdated: number | null = null): PendingSms => ({
  aud: "pending",
  uid: "crl_sms_1",
  send_initially_queued_at: NOW - 60,
  message_resource_created_at: NOW - 50,
  message_resource_last_updated_at: NOW - 50,
  message_resource_sid: SID,
  message_resource_status: status,
  message_resource_error_code: null,
  message_resource_date_updated: dateUpdated,
  failure_job_last_called_at: null,
  num_failures: 0,
  num_changes: 0,
  phone_number: "+14155550132",
  body: "hi",
  failure_job: job,
  success_job: job,
});

const news = (status: string, more: Partial<SmsEvent> = {}): SmsEvent => ({
  sid: SID,
  status,
  error_code: null,
  error_message: null,
  date_updated: null,
  information_received_at: NOW,
  received_via: "webhook",
  ...more,
});

test("whatever news comes in whatever order, a text never goes back on its way and ends once", () => {
  const event = fc.record({
    status: fc.constantFrom(...WAY),
    date_updated: fc.option(fc.integer({ min: 1, max: 6 })),
    information_received_at: fc.integer({ min: NOW - 100, max: NOW }),
  });
  fc.assert(
    fc.property(fc.constantFrom(...RANKS), fc.array(event, { maxLength: 12 }), (first, events) => {
      let known: PendingSms | undefined = pending(first);
      let ends = 0;
      for (const told of events) {
        const verdict: EventVerdict = judge(news(told.status, told), known, bench);
        if (known === undefined) expect(["early", "unknown"]).toContain(verdict.kind);
        else if (verdict.kind === "updated") {
          expect(smsCategory(verdict.fields.message_resource_status!)).toBe("pending");
          expect(verdict.fields.num_changes).toBe(known.num_changes + 1);
          const [from, to] = [known.message_resource_status, told.status].map((status) => RANKS.indexOf(status));
          const [held, date] = [known.message_resource_date_updated, told.date_updated];
          const newerByProvider = held !== null && date !== null && date > held;
          if (from! >= 0 && to! >= 0 && !newerByProvider) expect(to!).toBeGreaterThan(from!);
          known = { ...known, ...verdict.fields };
        } else if (verdict.kind === "removed") {
          ends += 1;
          known = undefined;
        }
      }
      expect(ends).toBeLessThanOrEqual(1);
    }),
  );
});

test("the provider's clock decides first, then the way of statuses, then when we heard of it", () => {
  const kind = (event: SmsEvent, known: PendingSms) => judge(event, known, bench).kind;
  expect(kind(news("queued", { date_updated: 90 }), pending("sending", 100))).toBe("out_of_order");
  expect(kind(news("queued", { date_updated: 110 }), pending("sending", 100))).toBe("updated");
  expect(kind(news("queued", { date_updated: 100 }), pending("sending", 100))).toBe("out_of_order");
  expect(kind(news("queued"), pending("accepted", 100))).toBe("updated");
  expect(kind(news("accepted"), pending("accepted"))).toBe("duplicate");
  expect(kind(news("accepted", { information_received_at: NOW - 51 }), pending("accepted"))).toBe("out_of_order");
  expect(kind(news("pondering", { information_received_at: NOW - 51 }), pending("accepted"))).toBe("out_of_order");
  expect(kind(news("pondering"), pending("accepted"))).toBe("updated");
  expect(kind(news("lost"), pending("sending", 100))).toBe("removed");
});

test("news of a text that nobody knows waits a minute at most, and less often the older it is", () => {
  const due = (age: number) => judge(news("sent", { information_received_at: NOW - age }), undefined, bench);
  expect(due(0)).toEqual({ kind: "early", due: NOW + 1 });
  expect(due(20)).toEqual({ kind: "early", due: NOW + 20 });
  expect(due(60).kind).toBe("unknown");
});
