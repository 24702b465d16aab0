import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { readSuccess, successJob } from "./callbacks.ts";
import { type PendingSms, pendingHash, SmsEntry, SmsEvent, smsEntry, smsEvent } from "./entries.ts";

const job = { name: "runners.sms.default_success", kwargs: {} };
const entry = {
  aud: "send",
  uid: "crl_sm_1",
  initially_queued_at: 1_790_000_000.5,
  retry: 0,
  last_queued_at: 1_790_000_000.5,
  phone_number: "+15555550123",
  body: "Guten Tag, schöne Grüße",
  failure_job: job,
  success_job: job,
};
const event = {
  sid: "SM0123",
  status: "delivered",
  error_code: null,
  error_message: null,
  date_updated: 1_790_000_000,
  information_received_at: 1_790_000_001,
  received_via: "webhook",
};
const pending: PendingSms = {
  aud: "pending",
  uid: "crl_sm_1",
  send_initially_queued_at: 1_790_000_000.5,
  message_resource_created_at: 1_790_000_001,
  message_resource_last_updated_at: 1_790_000_001,
  message_resource_sid: "SM0123",
  message_resource_status: "queued",
  message_resource_error_code: null,
  message_resource_date_updated: 1_790_000_000,
  failure_job_last_called_at: null,
  num_failures: 0,
  num_changes: 3,
  phone_number: "+15555550123",
  body: "Guten Tag, schöne Grüße",
  failure_job: job,
  success_job: job,
};

const outcome = (read: () => unknown) => {
  try {
    return { value: read() };
  } catch {
    return "refused";
  }
};

/** Some members replaced, left out or added. */
const changes = <T>(sound: object, value: fc.Arbitrary<T>) =>
  fc
    .array(
      fc.tuple(fc.constantFrom(...Object.keys(sound), "unanswered_since", "to", "more", "__proto__"), fc.option(value)),
      { maxLength: 3 },
    )
    .map((changed) => {
      const members = new Map<string, unknown>(Object.entries(sound));
      for (const [name, to] of changed)
        if (to === null) members.delete(name);
        else members.set(name, to);
      return members;
    });

test.each([
  ["a text", entry, smsEntry, SmsEntry],
  ["news of a text", event, smsEvent, SmsEvent],
] as const)("%s that is read by hand is what its schema reads", (_, sound, codec, schema) => {
  const value = fc.oneof(
    fc.constantFrom("", "x", "+15", "poll", "send", -1, 0, 1, 0.5, 1e300, true, {}, [], { name: "x" }),
    fc.constantFrom({ name: "x.y", kwargs: {} }, { name: "", kwargs: {} }, { name: "x.y", kwargs: { data_raw: "" } }),
    fc.constant({ name: "x.y", kwargs: {}, more: 1 }),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(changes(sound, value), (members) => {
      // Written by hand, because objects treat __proto__ in a way of their own.
      const json = `{${[...members].map(([name, held]) => `${JSON.stringify(name)}:${JSON.stringify(held)}`).join(",")}}`;
      expect(outcome(() => codec.decode(Buffer.from(json)))).toEqual(outcome(() => schema.parse(JSON.parse(json))));
    }),
    { numRuns: 1_000, examples: [[new Map(Object.entries(sound))]] },
  );
});

test("a pending text that is read from texts is what is read from bytes", () => {
  const flat = pendingHash.encode(pending).map(String);
  const sound = Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]!]] : [])));
  expect(pendingHash.read!(sound)).toEqual(pending);
  const text = fc.oneof(
    fc.constantFrom(
      "",
      "x",
      "{}",
      "[]",
      "null",
      " 5 ",
      "-1",
      "1e3",
      "1e300",
      '{"name":"","kwargs":{}}',
      "ü".repeat(17_000),
    ),
    fc.jsonValue().map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(changes(sound, text), (members) => {
      members.delete("__proto__");
      const texts = Object.fromEntries(members) as Record<string, string>;
      const bytes = Object.fromEntries([...members].map(([name, held]) => [name, Buffer.from(held as string)]));
      expect(outcome(() => pendingHash.read!(texts))).toEqual(outcome(() => pendingHash.decode(bytes)));
    }),
    { numRuns: 500 },
  );
});

test("the success story of a text arrives as it was told, and one that is not quite a story is refused", () => {
  const resource = { sid: "SM0123", status: "delivered", error_code: null, date_updated: null };
  const text = successJob(SmsEntry.parse(entry), { createdAt: 1, succeededAt: 2, resource }, 3);
  const { kwargs, ...rest } = JSON.parse(text) as { kwargs: { data_raw: string } };
  expect(rest).toEqual({ name: job.name, queued_at: 3 });
  const { uid, initially_queued_at, phone_number, body } = entry;
  const story = {
    sms: { aud: "success", uid, initially_queued_at, phone_number, body },
    result: { message_resource_created_at: 1, message_resource_succeeded_at: 2, message_resource: resource },
  };
  expect(readSuccess(kwargs.data_raw)).toEqual(story);
  expect(readSuccess(encodeDataRaw({ ...story, more: 1, sms: { ...story.sms, more: 1 } }))).toEqual(story);
  for (const wrong of [
    { ...story, result: {} },
    { ...story, sms: { ...story.sms, uid: 1 } },
    { ...story, result: { ...story.result, message_resource: { ...resource, date_updated: "now" } } },
    null,
  ])
    expect(() => readSuccess(encodeDataRaw(wrong))).toThrow("is not about a text");
});
