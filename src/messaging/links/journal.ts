import { mkdirSync } from "node:fs";
import { open, type RootDatabase } from "lmdb";
import { z } from "zod";
import { BufferedClick, CODE } from "./entries.ts";

const Noted = z.strictObject({ code: z.string().regex(CODE), click: BufferedClick });
export type Noted = z.output<typeof Noted>;

/** More than any outage should bring; beyond it clicks still redirect and are not kept. */
const MOST = 200_000;
const PAGE = 500;

/** Names are in the order of the alphabet, and so a click comes before whoever signed in after it. */
const nameOf = ({ click: { track_type, uid } }: Noted) => `${track_type} ${uid}`;

/**
 * Uses of links that came while Redis or SQL was away, on this machine's disk until they can be counted.
 *
 * A use is noted before its visitor is sent on, and removed after it was taken. A process that dies in between leaves it
 * here, and the next one of this instance takes it again: its uid keeps it from counting twice.
 */
export class ClickJournal {
  readonly #database: RootDatabase<string, string>;

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#database = open<string, string>({ path: folder, encoding: "string" });
  }

  get size(): number {
    return (this.#database.getStats() as { entryCount: number }).entryCount;
  }

  /** Done when it is on disk; false when the journal is full. */
  async note(noted: Noted): Promise<boolean> {
    if (this.size >= MOST) return false;
    return this.#database.put(nameOf(noted), JSON.stringify(noted));
  }

  /** The next uses, clicks before sign-ins. What cannot be read is no use to anybody and is removed. */
  next(): readonly Noted[] {
    const found: Noted[] = [];
    for (const { key, value } of this.#database.getRange({ limit: PAGE })) {
      const noted = readNoted(value);
      if (noted) found.push(noted);
      else void this.#database.remove(key);
    }
    return found;
  }

  async remove(taken: readonly Noted[]): Promise<void> {
    await Promise.all(taken.map((noted) => this.#database.remove(nameOf(noted))));
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

function readNoted(text: string): Noted | undefined {
  try {
    return Noted.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
