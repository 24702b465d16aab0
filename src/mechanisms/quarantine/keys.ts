import { z } from "zod";
import { expires, family, json, list, literal, string } from "../../kernel/keyspace/index.ts";

/**
 * An entry that no consumer could read. `raw` is the entry as text; bytes that are not UTF-8 stand in `raw_base64`
 * instead. For a hash of a pending set, `queue` is the set's name and `raw` the hash as JSON.
 */
export const QuarantinedEntry = z.union([
  z.strictObject({
    id: z.string().min(1),
    queue: z.string().min(1),
    raw: z.string(),
    reason: z.string(),
    quarantined_at: z.number(),
  }),
  z.strictObject({
    id: z.string().min(1),
    queue: z.string().min(1),
    raw_base64: z.base64(),
    reason: z.string(),
    quarantined_at: z.number(),
  }),
]);
export type QuarantinedEntry = z.infer<typeof QuarantinedEntry>;

export const quarantineKeys = family("jobs", {
  entries: list(
    "quarantine:{queue}",
    json(QuarantinedEntry, { shape: "JSON `id`, `queue`, `raw` or `raw_base64`, `reason`, `quarantined_at`" }),
    {
      doc: "Entries of a queue that could not be read, newest first; kept until somebody re-drives or discards them.",
      origin: "carillon",
      shared: true,
      // What could not be read may be anything, such as a text with a code in it.
      secret: true,
      params: { queue: /.+/ },
    },
  ),
  alerted: string("jobs:quarantine_alerted:{queue}", literal("1"), {
    doc: "Present for an hour after an alert about this queue's quarantine, so that a flood of bad entries rings once.",
    ttl: expires(3600),
    origin: "carillon",
    params: { queue: /.+/ },
  }),
});
