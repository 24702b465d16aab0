import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

/** A member as scripts give it out: member, score, the hash as field and value in turn, each companion's members. */
export type Snapshot = [member: string, score: string, hash: string[], ...companions: string[][]];

/** A hash that has just the fields that it should have: their values in order, then the score. */
export type Values = string[];

const counted = ([healed, results]: [number, number[]]) => ({ healed, results });
const snapshots = ([healed, found]: [number, (Snapshot | null)[]]) => ({ healed, found });

export const add = defineScript({
  name: "pending_set.add",
  file: file("add"),
  keys: ["set", "quarantine"],
  args: ["version_field", "companions", "queue", "now", "call_id", "...items"],
  idempotent: false,
  reply: counted,
});

export const get = defineScript({
  name: "pending_set.get",
  file: file("get"),
  keys: ["set", "quarantine"],
  args: ["version_field", "companions", "queue", "now", "call_id", "size", "...members"],
  idempotent: true,
  reply: ([healed, found]: [number, (Snapshot | Values | null)[]]) => ({ healed, found }),
});

export const updateIf = defineScript({
  name: "pending_set.update_if",
  file: file("update_if"),
  keys: ["set", "quarantine"],
  args: ["version_field", "companions", "queue", "now", "call_id", "...items"],
  idempotent: false,
  reply: counted,
});

export const removeIf = defineScript({
  name: "pending_set.remove_if",
  file: file("remove_if"),
  keys: ["set", "quarantine", "...jobs"],
  args: ["version_field", "companions", "queue", "now", "call_id", "...items"],
  idempotent: false,
  reply: counted,
});

export const takeStale = defineScript({
  name: "pending_set.take_stale",
  file: file("take_stale"),
  keys: ["set", "quarantine"],
  args: [
    "version_field",
    "companions",
    "queue",
    "now",
    "call_id",
    "bump_to",
    "max_items",
    "last_called_field",
    "failures_field",
  ],
  idempotent: false,
  reply: snapshots,
});

export const popDue = defineScript({
  name: "pending_set.pop_due",
  file: file("pop_due"),
  keys: ["set", "quarantine"],
  args: ["version_field", "companions", "queue", "now", "call_id", "max_score", "max_items"],
  idempotent: false,
  reply: snapshots,
});

export const quarantine = defineScript({
  name: "pending_set.quarantine",
  file: file("quarantine"),
  keys: ["set", "quarantine"],
  args: ["version_field", "companions", "queue", "now", "call_id", "...items"],
  idempotent: false,
  reply: counted,
});
