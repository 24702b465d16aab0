import { expect, test } from "vitest";
import { sesNotificationOf } from "./ses-notification.ts";

const mail = { messageId: "0100", destination: ["a@example.org"], tags: {} };
const read = (body: unknown) => sesNotificationOf(typeof body === "string" ? body : JSON.stringify(body));

test("deliveries are events, by either name of their type", () => {
  const event = { messageId: "0100", notification: { type: "Delivery" } };
  expect(read({ notificationType: "Delivery", mail, delivery: {} })).toEqual({ kind: "event", event });
  expect(read({ eventType: "Delivery", mail })).toEqual({ kind: "event", event });
});

test("the uid that a mail was sent with comes back from its tag, else from its header", () => {
  const uidOf = (more: object) => {
    const answer = read({ eventType: "Delivery", mail: { ...mail, ...more } });
    return answer.kind === "event" ? answer.event.uid : answer;
  };
  const header = { name: "X-Carillon-Email-Uid", value: "crl_em_2" };
  expect(uidOf({ tags: { uid: ["crl_em_1"], template: ["welcome"] } })).toBe("crl_em_1");
  expect(uidOf({ tags: { uid: ["crl_em_1"] }, headers: [header] })).toBe("crl_em_1");
  expect(uidOf({ tags: null, headers: ["odd", { name: "To" }, header] })).toBe("crl_em_2");
  expect(uidOf({ headers: [{ ...header, value: "not a uid\r\n" }] })).toBeUndefined();
  expect(uidOf({ tags: { uid: "crl_em_1" }, headers: "none" })).toBeUndefined();
});

test("bounces keep their two reasons and who bounced", () => {
  const bounce = {
    bounceType: "Permanent",
    bounceSubType: "NoEmail",
    bouncedRecipients: [{ emailAddress: "a@example.org", status: "5.1.1" }, {}, "x"],
  };
  const notification = {
    type: "Bounce",
    reason: { primary: "Permanent", secondary: "NoEmail" },
    destination: ["a@example.org"],
    bounced_recipients: ["a@example.org"],
  };
  expect(read({ notificationType: "Bounce", mail, bounce })).toEqual({
    kind: "event",
    event: { messageId: "0100", notification },
  });
  const subtypeOf = (bounceSubType: unknown) =>
    read({ notificationType: "Bounce", mail, bounce: { ...bounce, bounceSubType } });
  const other = { notification: { reason: { primary: "Permanent", secondary: "Other" } } };
  for (const said of ["has spaces", "x".repeat(65), ""])
    expect(subtypeOf(said)).toMatchObject({ event: other, replaced: { bounceSubType: said } });
  expect(subtypeOf(undefined)).toMatchObject({ event: other });
  expect(subtypeOf(undefined)).not.toHaveProperty("replaced");
});

test("complaints keep their kind, which may be unknown", () => {
  const complaint = { complaintFeedbackType: "abuse", complainedRecipients: [{ emailAddress: "a@example.org" }] };
  expect(read({ notificationType: "Complaint", mail, complaint })).toMatchObject({
    event: { notification: { type: "Complaint", feedback_type: "abuse", complained_recipients: ["a@example.org"] } },
  });
  expect(read({ eventType: "Complaint", mail: { messageId: "1" }, complaint: {} })).toEqual({
    kind: "event",
    event: {
      messageId: "1",
      notification: { type: "Complaint", feedback_type: null, destination: [], complained_recipients: [] },
    },
  });
});

test("kinds and ids that nobody could read later are replaced, and it says by what they were", () => {
  const long = "i".repeat(600);
  const complaint = {
    complaintFeedbackType: "y".repeat(65),
    complainedRecipients: [{ emailAddress: "a@example.org" }],
  };
  expect(read({ notificationType: "Complaint", mail: { ...mail, messageId: long }, complaint })).toMatchObject({
    event: { messageId: "i".repeat(512), notification: { feedback_type: "Other" } },
    replaced: { complaintFeedbackType: "y".repeat(65), messageId: long },
  });
});

test("a rejected mail counts as bounced for its content", () => {
  expect(read({ eventType: "Reject", mail, reject: { reason: "Bad content" } })).toMatchObject({
    event: { notification: { type: "Bounce", reason: { primary: "Transient", secondary: "ContentRejected" } } },
  });
});

test.each(["Send", "Open", "Click", "DeliveryDelay", "Rendering Failure", "Subscription"])(
  "a notification of type %s is understood and ignored",
  (eventType) => {
    expect(read({ eventType, mail })).toEqual({ kind: "ignored", type: eventType });
  },
);

test("the greeting of a new topic is ignored", () => {
  const greeting = "Successfully validated SNS topic for Amazon SES event publishing.";
  expect(read(greeting)).toEqual({ kind: "ignored", type: "validation" });
  expect(read({ notificationType: "AmazonSnsSubscriptionSucceeded" })).toMatchObject({ kind: "ignored" });
});

test.each<[string, unknown]>([
  ["that is not JSON", "hello"],
  ["that is a list", []],
  ["without a type", { mail }],
  ["of an unknown type", { eventType: "Teleport", mail }],
  ["without a message id", { eventType: "Delivery", mail: {} }],
  ["of a bounce without its reasons", { eventType: "Bounce", mail }],
  ["of a bounce of unknown kind", { eventType: "Bounce", mail, bounce: { bounceType: "Odd" } }],
  ["of a complaint without its part", { eventType: "Complaint", mail }],
])("a notification %s is kept for a person to look at", (_, body) => {
  expect(read(body)).toMatchObject({ kind: "unprocessable", reason: expect.stringMatching(/./) });
});
