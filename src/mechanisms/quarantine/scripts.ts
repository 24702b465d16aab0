import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export const requeueList = defineScript({
  name: "quarantine.requeue_list",
  file: file("requeue_list"),
  keys: ["quarantine", "queue"],
  args: ["entry", "item"],
  idempotent: false,
  reply: (code: number) => code === 1,
});

export const requeueZset = defineScript({
  name: "quarantine.requeue_zset",
  file: file("requeue_zset"),
  keys: ["quarantine", "schedule"],
  args: ["entry", "member", "score"],
  idempotent: false,
  reply: (code: number) => code === 1,
});

export const requeuePending = defineScript({
  name: "quarantine.requeue_pending",
  file: file("requeue_pending"),
  keys: ["quarantine", "set", "hash"],
  args: ["entry", "member", "score", "...fields"],
  idempotent: false,
  reply: (code: 1 | 0 | -1) =>
    ({ 1: "moved", 0: "absent", [-1]: "duplicate" })[code] as "moved" | "absent" | "duplicate",
});
