import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { json, matching } from "../../kernel/keyspace/index.ts";

export const TOUCH_CHANNELS = ["push", "sms", "email"] as const;
export type TouchChannel = (typeof TOUCH_CHANNELS)[number];
/** What contact methods call the address of a channel. */
export const METHOD_OF = { push: "push", sms: "phone", email: "email" } as const;

export const SLUG = /^[a-zA-Z][a-zA-Z_]*[a-zA-Z]$/;
export const TOUCH_UID = /^crl_tch_[A-Za-z0-9_-]{1,128}$/;
/** What a script may take without keeping everybody else waiting. */
export const LARGEST_ENTRY = 65_536;

/** A job that is queued when a touch ends. It gets no further arguments. */
export const Callback = z.object({
  name: z.string().min(1).max(200),
  kwargs: z.record(z.string(), z.unknown()),
});
export type Callback = z.output<typeof Callback>;

/** Whose touch failed: what the job that tells of it is given. */
export const FailedTouch = z.strictObject({
  touch_uid: z.string(),
  user_sub: z.string(),
  channel: z.enum(TOUCH_CHANNELS),
});

const Time = z.number().min(0).max(1e11);

export const TouchEntry = z.object({
  aud: z.literal("send"),
  uid: z.string().regex(TOUCH_UID),
  user_sub: z.string().min(1).max(255),
  touch_point_event_slug: z.string().min(1).max(255),
  channel: z.enum(TOUCH_CHANNELS),
  event_parameters: z.record(z.string(), z.unknown()),
  success_callback: Callback.nullable(),
  failure_callback: Callback.nullable(),
  queued_at: Time,
});
export type TouchEntry = z.output<typeof TouchEntry>;
const checkedEntry = json(TouchEntry);

/** What is plainly a touch is known at a glance; whatever else there is, the schema judges, and says what is wrong. */
export const touchEntry: typeof checkedEntry = {
  ...checkedEntry,
  decode(raw) {
    const value = isUtf8(raw) ? parsedOrNothing(raw.toString("utf8")) : undefined;
    return isPlainTouch(value) ? value : checkedEntry.decode(raw);
  },
};

function parsedOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const FIELDS = Object.keys(TouchEntry.shape).length;
const isText = (value: unknown) => typeof value === "string" && value.length >= 1 && value.length <= 255;
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Object.hasOwn(value, "__proto__");

function isPlainCallback(value: unknown): boolean {
  if (value === null) return true;
  if (!isObject(value) || Object.keys(value).length !== 2) return false;
  return isText(value.name) && (value.name as string).length <= 200 && isObject(value.kwargs);
}

function isPlainTouch(value: unknown): value is TouchEntry {
  if (!isObject(value) || Object.keys(value).length !== FIELDS) return false;
  const { uid, channel, queued_at: at } = value;
  return (
    value.aud === "send" &&
    typeof uid === "string" &&
    TOUCH_UID.test(uid) &&
    isText(value.user_sub) &&
    isText(value.touch_point_event_slug) &&
    (channel === "push" || channel === "sms" || channel === "email") &&
    isObject(value.event_parameters) &&
    isPlainCallback(value.success_callback) &&
    isPlainCallback(value.failure_callback) &&
    typeof at === "number" &&
    at >= 0 &&
    at <= 1e11
  );
}

export const touchUid = matching(TOUCH_UID, "uid of a touch");
export const messageUid = matching(/^crl_(sms|em|pma)_[A-Za-z0-9_-]{1,128}$/, "uid of a message");
export const callback = json(Callback);

/** What happened to one touch, as its debug trail tells it. */
export const DebugEvent = z.looseObject({ type: z.string() });
export type DebugEvent = z.output<typeof DebugEvent>;

const State = z.unknown();
const StateFields = z.object({
  touch_point_uid: z.string(),
  user_sub: z.string(),
  channel: z.enum(TOUCH_CHANNELS),
  state: State,
});

/** Rows that the log job writes. Which table and which action is closed: anything else is set aside. */
export const LogEntry = z.union([
  z.object({
    table: z.literal("user_touch_point_states"),
    action: z.literal("insert"),
    fields: StateFields,
    queued_at: Time,
  }),
  z.object({
    table: z.literal("user_touch_point_states"),
    action: z.literal("update"),
    expected_version: z.int().min(1),
    fields: StateFields,
    queued_at: Time,
  }),
  z.object({
    table: z.literal("user_touches"),
    action: z.literal("insert"),
    fields: z.object({
      uid: z.string().regex(TOUCH_UID),
      row_uid: z.string(),
      user_sub: z.string(),
      channel: z.enum(TOUCH_CHANNELS),
      touch_point_uid: z.string().nullable(),
      destination: z.string(),
      message: z.record(z.string(), z.unknown()),
      created_at: Time,
    }),
    queued_at: Time,
  }),
  z.object({
    table: z.literal("user_touch_debug_log"),
    action: z.literal("insert"),
    fields: z.object({ uid: z.string(), user_sub: z.string(), event: DebugEvent, created_at: Time }),
    queued_at: Time,
  }),
  z.object({
    table: z.literal("user_push_tokens"),
    action: z.literal("update"),
    fields: z.object({ token: z.string(), last_confirmed_at: Time }),
    queued_at: Time,
  }),
]);
export type LogEntry = z.output<typeof LogEntry>;
export const logEntry = json(LogEntry, { shape: "JSON {table, action, expected_version?, fields, queued_at}" });

/** Messages for one channel, on their way to its room. */
export const HandoverGroup = z.object({
  uid: z.string(),
  items: z.array(z.record(z.string(), z.unknown())).min(1).max(500),
});
export const handoverGroup = json(HandoverGroup);
