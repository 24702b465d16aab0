import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { readSuccess, successJob } from "./callbacks.ts";
import { Attempt, attemptEntry, MailNews, newsEntry, pendingHash } from "./entries.ts";

const job = { name: "runners.emails.default_success", kwargs: {} };
const attempt = {
  aud: "send",
  uid: "crl_em_1",
  email: "ada@example.com",
  subject: "Your daily reminder",
  template: "dailyReminder",
  template_parameters: { name: "Ada" },
  initially_queued_at: 1_790_000_000.5,
  retry: 0,
  last_queued_at: 1_790_000_000.5,
  failure_job: job,
  success_job: job,
};
const pending = {
  aud: "pending",
  uid: "crl_em_1",
  message_id: "ses-1",
  email: "ada@example.com",
  subject: "Grüße",
  template: "dailyReminder",
  template_parameters: { name: "Ada" },
  send_initially_queued_at: 1_790_000_000,
  send_accepted_at: 1_790_000_001.25,
  failure_job: job,
  success_job: { name: "a.b", kwargs: { say: '"quoted"' } },
} as const;
const news = { message_id: "ses-1", notification: { type: "Delivery" }, received_at: 1_790_000_002 };

/** Values that are nearly right: any one member replaced, left out, or added. */
function nearly(sound: object) {
  const value = fc.oneof(
    fc.constantFrom("", "x", "a\nb", "nobody", -1, 0, 1, 5, 0.5, 1e300, null, true, {}, [], { name: "x" }),
    fc.constantFrom(
      { name: "x.y", kwargs: {} },
      { name: "x.y", kwargs: [] },
      { name: "x.y", kwargs: { data_raw: "" } },
    ),
    fc.constantFrom({ name: "x.y", kwargs: {}, more: 1 }, { type: "delivery" }, { type: "Delivery", more: 1 }),
    fc.jsonValue(),
  );
  const name = fc.constantFrom(...Object.keys(sound), "uid", "more", "__proto__");
  return fc.array(fc.tuple(name, fc.option(value, { nil: undefined })), { maxLength: 3 }).map((changes) => {
    const members = new Map<string, unknown>(Object.entries(sound));
    for (const [member, changed] of changes)
      if (changed === undefined) members.delete(member);
      else members.set(member, changed);
    // Written by hand, because objects treat __proto__ in a way of their own.
    return `{${[...members].map(([member, held]) => `${JSON.stringify(member)}:${JSON.stringify(held)}`).join(",")}}`;
  });
}

const outcome = (read: () => unknown) => {
  try {
    return { value: read() };
  } catch {
    return "refused";
  }
};

test.each([
  ["an attempt", attempt, attemptEntry, Attempt],
  ["news", news, newsEntry, MailNews],
] as const)("%s that is read by hand is what the schema reads", (_, sound, codec, schema) => {
  fc.assert(
    fc.property(nearly(sound), (json) => {
      const byHand = outcome(() => codec.decode(Buffer.from(json)));
      expect(byHand).toEqual(outcome(() => schema.parse(JSON.parse(json))));
      expect(outcome(() => codec.read!(json))).toEqual(byHand);
    }),
    { numRuns: 1_000, examples: [[JSON.stringify(sound)]] },
  );
});

test("a pending mail that is read from texts is what is read from bytes", () => {
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
      "pending",
      '{"name":"","kwargs":{}}',
      "ü".repeat(99_000),
    ),
    fc.jsonValue().map((value) => JSON.stringify(value)),
  );
  const name = fc.constantFrom(...Object.keys(sound), "more");
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.option(text, { nil: undefined })), { maxLength: 3 }), (changes) => {
      const changed = new Map(Object.entries(sound));
      for (const [field, to] of changes)
        if (to === undefined) changed.delete(field);
        else changed.set(field, to);
      const texts = Object.fromEntries(changed);
      const bytes = Object.fromEntries([...changed].map(([field, held]) => [field, Buffer.from(held)]));
      expect(outcome(() => pendingHash.read!(texts))).toEqual(outcome(() => pendingHash.decode(bytes)));
    }),
    { numRuns: 500 },
  );
});

test("a success story arrives as it was told, and one that is not quite a story is refused", () => {
  const text = successJob(pending, 1_790_000_003, 1_790_000_004);
  const { kwargs, ...rest } = JSON.parse(text) as { kwargs: { data_raw: string; say: string } };
  expect(rest).toEqual({ name: "a.b", queued_at: 1_790_000_004 });
  expect(kwargs.say).toBe('"quoted"');
  const story = { email: pending, info: { delivery_received_at: 1_790_000_003 } };
  expect(readSuccess(kwargs.data_raw)).toEqual(story);
  expect(readSuccess(encodeDataRaw({ ...story, more: 1, email: { ...pending, more: 1 } }))).toEqual(story);
  for (const wrong of [
    { ...story, info: {} },
    { ...story, email: { ...pending, uid: 1 } },
    { ...story, email: { ...pending, success_job: { name: "a.b", kwargs: { data_raw: "" } } } },
    { ...story, email: { ...pending, aud: "send" } },
    [],
    null,
  ])
    expect(() => readSuccess(encodeDataRaw(wrong))).toThrow("data_raw is not about a mail");
});
