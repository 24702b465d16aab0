import { z } from "zod";
import { json } from "../../kernel/keyspace/index.ts";

/** One step of a message's life, told by the channel that carries it. */
export interface Note {
  readonly channel: "push" | "sms" | "email";
  readonly uid: string;
  /** When it happened; now, unless something else is known. */
  readonly at?: number;
  /** One lowercase word or a few: `queued`, `accepted`, `delivered`, `retried`, `abandoned`, `timed_out`. */
  readonly step: string;
  readonly provider?: string | null;
  /** Why or how, in the words of a classification: a status, an error's identifier. Never a text, a code or an address. */
  readonly detail?: string | null;
  /** Whom the message is for, on its first step only: it reaches SQL as a keyed digest, to search by. */
  readonly address?: string | null;
}

/** A note as it waits for SQL: short, because every message has several. */
export const StoredNote = z.tuple([
  z.string(),
  z.string(),
  z.number(),
  z.string(),
  z.string().nullable(),
  z.string().nullable(),
  z.string().nullable(),
]);
export type StoredNote = z.output<typeof StoredNote>;

/** Steps that were told together; one entry of the buffer. */
export const noteGroup = json(z.array(StoredNote), {
  shape: "JSON of steps, each `[channel, uid, at, step, provider, detail, address]`",
});

export const LONGEST_UID = 128;
const LONGEST_STEP = 32;
const LONGEST_DETAIL = 120;
const LONGEST_ADDRESS = 254;

/** What SQL would refuse is taken out here, so that no note can spoil the statement that stores its neighbours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is meant
const UNPRINTABLE = /[\u0000-\u001f\u007f]+/g;

function tidy(text: string | null | undefined, longest: number): string | null {
  if (text === null || text === undefined) return null;
  const clean = text.replaceAll(UNPRINTABLE, " ");
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

export function tidyUid(uid: string): string {
  return uid.replaceAll(UNPRINTABLE, " ").slice(0, LONGEST_UID);
}

export function storedNote(note: Note, now: number): StoredNote {
  return [
    note.channel,
    tidyUid(note.uid),
    note.at ?? now,
    tidy(note.step, LONGEST_STEP)!,
    tidy(note.provider, LONGEST_STEP),
    tidy(note.detail, LONGEST_DETAIL),
    tidy(note.address, LONGEST_ADDRESS),
  ];
}
