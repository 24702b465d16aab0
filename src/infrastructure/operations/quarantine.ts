import type { Context } from "../../jobs/index.ts";
import type { Catalogue } from "../../kernel/keyspace/index.ts";
import {
  listQuarantined,
  type QuarantinedEntry,
  type RequeueOptions,
  requeueQuarantined,
} from "../../mechanisms/quarantine/index.ts";
import { errors } from "./errors.ts";

/** A quarantined entry as it is shown: what came from a secret queue is named, not read out. */
export type ShownEntry = QuarantinedEntry | (Omit<QuarantinedEntry, "raw" | "raw_base64"> & { withheld: true });

/** One page of a queue's quarantine, newest first, and where the next page begins. */
export async function readQuarantine(
  ctx: Pick<Context, "redis" | "catalogue">,
  queue: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: ShownEntry[]; next_offset: number | null }> {
  const found = await listQuarantined(ctx, queue, { offset, limit: limit + 1 });
  const secret = ctx.catalogue.match(queue)?.entry.secret ?? false;
  const items = found.slice(0, limit).map((entry) => (secret ? withheld(entry) : entry));
  return { items, next_offset: found.length > limit ? offset + limit : null };
}

function withheld({ id, queue, reason, quarantined_at }: QuarantinedEntry): ShownEntry {
  return { id, queue, reason, quarantined_at, withheld: true };
}

/** Puts an entry back. A correction must be readable, or the entry would only come back here under another id. */
export async function redrive(
  ctx: Pick<Context, "redis" | "clock" | "catalogue">,
  queue: string,
  id: string,
  options: RequeueOptions,
): Promise<void> {
  if (options.corrected !== undefined) checkCorrection(ctx.catalogue, queue, options.corrected);
  await requeueQuarantined(ctx, ctx.catalogue, queue, id, options);
}

function checkCorrection(catalogue: Catalogue, queue: string, corrected: string): void {
  // The hashes of a pending set stand under keys below its name; what goes back is one of them, as JSON.
  const hash = catalogue.entries.find(({ type, compiled }) => type === "hash" && compiled.literalPrefix === `${queue}:`)
    ?.value.hash;
  try {
    if (hash) hash.decode(fieldsOf(corrected));
    else catalogue.match(queue)?.entry.value.element?.decode(Buffer.from(corrected));
  } catch (error) {
    throw errors.correction_unreadable({ message: error instanceof Error ? error.message : String(error) });
  }
}

function fieldsOf(corrected: string): Record<string, Buffer> {
  const fields: unknown = JSON.parse(corrected);
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) throw new TypeError("not a JSON object");
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (typeof value !== "string") throw new TypeError(`field ${name} is not a text`);
      return [name, Buffer.from(value)];
    }),
  );
}
