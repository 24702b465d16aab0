import { z } from "zod";
import { json } from "../../kernel/keyspace/index.ts";

/** One step of a message's life, told by the channel that carries it. */
export interface Note {
  readonly channel: "push" | "sms" | "email" | "touch";
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
export type StoredNote = readonly [
  channel: string,
  uid: string,
  at: number,
  step: string,
  provider: string | null,
  detail: string | null,
  address: string | null,
];

/** Checked by hand: every message has several notes, and a schema costs more than storing them. */
function isGroup(value: unknown): value is StoredNote[] {
  const isText = (text: unknown) => typeof text === "string";
  const isWord = (text: unknown) => text === null || typeof text === "string";
  return (
    Array.isArray(value) &&
    value.every(
      (note: unknown) =>
        Array.isArray(note) &&
        note.length === 7 &&
        isText(note[0]) &&
        isText(note[1]) &&
        Number.isFinite(note[2]) &&
        isText(note[3]) &&
        isWord(note[4]) &&
        isWord(note[5]) &&
        isWord(note[6]),
    )
  );
}

/** Steps that were told together; one entry of the buffer. */
export const noteGroup = json(z.custom<StoredNote[]>(isGroup, "is no list of steps"), {
  shape: "JSON of steps, each `[channel, uid, at, step, provider, detail, address]`",
});

export const LONGEST_UID = 128;
const LONGEST_STEP = 32;
const LONGEST_DETAIL = 120;
const LONGEST_ADDRESS = 254;

/** What SQL would refuse is taken out here, so that no note can spoil the statement that stores its neighbours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is meant
const UNPRINTABLE = /[\u0000-\u001f\u007f]/;

/** Nearly every text is as it should be, and looking is cheaper than replacing. */
function printable(text: string): string {
  return UNPRINTABLE.test(text) ? text.replaceAll(new RegExp(UNPRINTABLE, "g"), " ") : text;
}

function tidy(text: string | null | undefined, longest: number): string | null {
  if (text === null || text === undefined) return null;
  const clean = printable(text);
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

export function tidyUid(uid: string): string {
  const clean = printable(uid);
  return clean.length > LONGEST_UID ? clean.slice(0, LONGEST_UID) : clean;
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
