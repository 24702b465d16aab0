import { defineScript } from "../../kernel/redis/index.ts";

export const applyScript = defineScript({
  name: "counters.apply",
  file: new URL("./scripts/apply.lua", import.meta.url),
  keys: ["...counters"],
  args: ["...operations"],
  idempotent: false,
  reply: (raw: number) => raw,
});

export const applyOnceScript = defineScript({
  name: "counters.apply_once",
  file: new URL("./scripts/apply_once.lua", import.meta.url),
  keys: ["applied", "...counters"],
  args: ["flag_ms", "...operations"],
  idempotent: true,
  reply: (raw: number) => raw === 1,
});

export const snapshotScript = defineScript({
  name: "counters.snapshot",
  file: new URL("./scripts/snapshot.lua", import.meta.url),
  keys: ["...counters"],
  args: [],
  idempotent: true,
  reply: (raw: string[][]) => raw,
});

export const consumeScript = defineScript({
  name: "counters.consume",
  file: new URL("./scripts/consume.lua", import.meta.url),
  keys: ["rotated", "earliest", "...counters"],
  args: ["date", "flag_ms", "...counts"],
  idempotent: true,
  reply: (raw: number) => raw === 1,
});

export const retainScript = defineScript({
  name: "counters.retain",
  file: new URL("./scripts/retain.lua", import.meta.url),
  keys: ["earliest", "...counters"],
  args: ["date", "keep_ms", "...counts"],
  idempotent: true,
  reply: (raw: number) => raw === 1,
});

export const retireSetScript = defineScript({
  name: "counters.retire_set",
  file: new URL("./scripts/retire_set.lua", import.meta.url),
  keys: ["members", "earliest"],
  args: ["period"],
  idempotent: true,
  reply: (raw: number) => raw === 1,
});

export const dropMonthsScript = defineScript({
  name: "counters.drop_months",
  file: new URL("./scripts/drop_months.lua", import.meta.url),
  keys: ["earliest", "...months"],
  args: ["current"],
  idempotent: true,
  reply: (raw: number) => raw,
});
