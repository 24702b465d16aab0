import { defineScript } from "../../../src/kernel/redis/index.ts";

export const settleDue = defineScript({
  name: "notes.settle_due",
  file: new URL("./scripts/settle_due.lua", import.meta.url),
  keys: ["alarms"],
  args: ["now", "...notes"],
  idempotent: true,
  reply: (raw: number[]) => raw.map((code) => code === 1),
});
