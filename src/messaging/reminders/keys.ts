import { z } from "zod";
import {
  family,
  fields,
  hash,
  integer,
  json,
  list,
  matching,
  optional,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";
import { jobLock } from "../../mechanisms/lock/index.ts";
import { reportFields } from "../../mechanisms/run-report/index.ts";
import { TouchEntry } from "../touch/service.ts";

/** A reminder of one registration for one local day. */
export const QueuedReminder = z.strictObject({
  uid: z.string().regex(/^crl_udr_[A-Za-z0-9_-]{1,128}$/),
  unix_date: z.int().min(0).max(1_000_000),
});
export type QueuedReminder = z.output<typeof QueuedReminder>;
export const queuedReminder = json(QueuedReminder, { canonical: true });

export const Handover = z.object({
  uid: z.string(),
  items: z.array(TouchEntry).min(1).max(500),
  /** The reminders that became these touches, to be remembered as sent. */
  reminders: z.array(QueuedReminder).max(500).optional(),
});
export const handover = json(Handover);

const zone = matching(/^[A-Za-z0-9_+/-]{1,64}$/, "IANA timezone");

export const keys = family("daily_reminders", {
  progress: hash(
    "daily_reminders:progress:{tz}:{unix_date}",
    fields({
      start_time: optional(integer),
      uid: optional(text),
      finished: optional(matching(/^1$/, "`1`")),
    }),
    {
      doc: "how far the times of one zone and day are assigned: the last registration, and whether it was the last of all",
    },
  ),
  zones: zset("daily_reminders:progress:timezones:{unix_date}", zone, {
    doc: "the zones that one day is gone through in",
    score: "place in the order",
  }),
  earliest: string("daily_reminders:progress:earliest", integer, {
    doc: "the earliest day that is not gone through in every zone",
  }),
  assignLock: jobLock("daily_reminders:assign_time_job_lock", "job that assigns times to reminders"),
  queued: zset("daily_reminders:queued", queuedReminder, {
    doc: "reminders with a time",
    score: "unix time at which to send it",
    due: true,
  }),
  sendPurgatory: zset("daily_reminders:send_purgatory", queuedReminder, {
    doc: "reminders that are being sent now",
    score: "unix time at which to send it",
    due: true,
  }),
  sendLock: jobLock("daily_reminders:send_job_lock", "job that sends reminders"),
  handover: list("daily_reminders:handover", handover, {
    doc: "groups of touches that the room of touches is to take",
    origin: "carillon",
    secret: true,
  }),
  assignReport: hash(
    "stats:daily_reminders:assign_time_job",
    reportFields([
      "start_unix_date",
      "end_unix_date",
      "unique_timezones",
      "pairs",
      "queries",
      "attempted",
      "overdue",
      "stale",
      "sms_queued",
      "push_queued",
      "email_queued",
    ]),
    {
      doc: "what the last run of assigning times did",
      report: { runner: "runners.daily_reminders.assign_time", unit: "milliseconds" },
    },
  ),
  sendReport: hash(
    "stats:daily_reminders:send_job",
    reportFields(["attempted", "lost", "stale", "links", "sms", "push", "email"]),
    {
      doc: "what the last run of sending reminders did",
      report: { runner: "runners.daily_reminders.send", unit: "milliseconds" },
    },
  ),
});

/** Counted together with contact methods, in the transactions that change who can be reached. */
export const countKeys = family("contacts", {
  counts: hash(
    "daily_reminders:counts",
    fields({ email: optional(integer), sms: optional(integer), push: optional(integer) }),
    { doc: "how many people get reminders, by channel" },
  ),
});
