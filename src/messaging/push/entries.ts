import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { RUNNER_NAME } from "../../jobs/runner.ts";
import { type Codec, json, undecodable } from "../../kernel/keyspace/index.ts";

/** The job that hears of a message's end. Its arguments are its own; `data_raw` is added when it is queued. */
export const Callback = z.looseObject({
  name: z.string().max(200).regex(RUNNER_NAME),
  kwargs: z
    .record(z.string(), z.unknown())
    .refine((kwargs) => !("data_raw" in kwargs), { message: "data_raw is added when the callback is queued" }),
});
export type Callback = z.infer<typeof Callback>;

/** What the device shows: the provider's message without its receiver. */
export const Contents = z.looseObject({ title: z.string(), body: z.string(), channel_id: z.string().nullable() });
export type Contents = z.infer<typeof Contents>;

/** It becomes part of key names, and must not break them. */
const MessageUid = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);

const common = {
  uid: MessageUid,
  /** When it first joined the place where it waits: the send queue, or the cold set. */
  initially_queued_at: z.number(),
  /** Earlier passing failures of this stage. */
  retry: z.int().min(0),
  last_queued_at: z.number(),
  push_token: z.string().min(1).max(200),
  contents: Contents,
  failure_job: Callback,
  success_job: Callback,
};

/** A notification that waits to be sent. Fields that others add are kept. */
export const SendEntry = z.looseObject({ aud: z.literal("send"), ...common });
export type SendEntry = z.infer<typeof SendEntry>;

/** A notification that the provider took, and whose receipt is awaited. */
export const CheckEntry = z.looseObject({
  aud: z.literal("check"),
  ...common,
  /** When it first joined the send queue: the day that all of its events count on. */
  attempt_initially_queued_at: z.number(),
  push_ticket: z.looseObject({ status: z.literal("ok"), id: z.string().min(1) }),
  push_ticket_created_at: z.number(),
  /** Which provider took it, since only that one knows its ticket. */
  provider: z.string().nullish(),
});
export type CheckEntry = z.infer<typeof CheckEntry>;

/** Both callbacks carry the whole entry in their arguments, which have a limit of 64 KiB. */
export const LARGEST_ENTRY = 49_152;

function entry<T>(schema: z.ZodType<T>, shape: string): Codec<T> {
  const inner = json(schema, { shape });
  return {
    shape,
    encode: inner.encode,
    decode(raw) {
      if (raw.length > LARGEST_ENTRY) throw undecodable(shape, `${raw.length} bytes; at most ${LARGEST_ENTRY}`);
      if (!isUtf8(raw)) throw undecodable(shape, "the bytes are not UTF-8");
      return inner.decode(raw);
    },
  };
}

export const sendEntry = entry(SendEntry, 'JSON of a notification to send, `"aud":"send"`');
export const checkEntry = entry(CheckEntry, 'JSON of a notification with a ticket, `"aud":"check"`');
