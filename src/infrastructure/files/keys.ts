import { z } from "zod";
import { expires, family, integer, json, literal, string, zset } from "../../kernel/keyspace/index.ts";
import { OWNER_LEASE, ownerLock } from "../../mechanisms/lock/index.ts";

/** One object that is to be deleted at its time, unless it is taken off the list before. */
export const FileMember = z.strictObject({
  bucket: z.string().min(1),
  key: z.string().min(1),
  /** Present when the deletion is wanted, absent when it would mean that an upload never finished. */
  expected: z.boolean().optional(),
  /** Who asked for the deletion. */
  hint: z.string().optional(),
});
export type FileMember = z.infer<typeof FileMember>;

export const fileMember = json(FileMember, {
  canonical: true,
  shape: 'canonical JSON `{"bucket":text,"expected"?:bool,"hint"?:text,"key":text}`',
});

export const PART_LIMIT_WINDOW = 60;
export const ALERT_WINDOW = 3600;

export const keys = family("files", {
  purgatory: zset("files:purgatory", fileMember, {
    doc: "objects that are deleted when their time comes: protections of running uploads, and wanted deletions",
    score: "unix time to delete it",
  }),
  sweepPurgatory: zset("files:sweep_purgatory", fileMember, {
    doc: "objects that the sweep is deleting right now",
    score: "unix time it was to be deleted",
    origin: "carillon",
  }),
  sweepLock: string("jobs:runner:sweep_partial_file_uploads:lock", ownerLock, {
    doc: "held by the one sweep of the file purgatory; in this family because its scripts are fenced by it",
    ttl: expires(OWNER_LEASE),
    origin: "carillon",
    lock: "owner",
  }),
  sweepAlerted: string("files:sweep_alerted", literal("1"), {
    doc: "the operators were told within the last hour that the sweep cannot delete",
    ttl: expires(ALERT_WINDOW),
    origin: "carillon",
  }),
  partAttempts: string("files:part_attempts:{file_upload_uid}", integer, {
    doc: "how many parts of one upload were sent in the running minute",
    ttl: expires(PART_LIMIT_WINDOW),
    origin: "carillon",
  }),
});
