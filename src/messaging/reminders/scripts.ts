import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);
const flag = (raw: number) => raw === 1;

export const openDate = defineScript({
  name: "daily_reminders.open_date",
  file: file("open_date"),
  keys: ["zones", "earliest"],
  args: ["date", "...names"],
  idempotent: true,
  reply: flag,
});

/** A repeat after a lost reply finds the cursor moved; the run ends, and the next one goes on from there. */
export const assign = defineScript({
  name: "daily_reminders.assign",
  file: file("assign"),
  keys: ["progress", "queued", "...counters"],
  args: ["from_start", "from_uid", "to_start", "to_uid", "count", "...items"],
  idempotent: false,
  reply: flag,
});

export const closeDate = defineScript({
  name: "daily_reminders.close_date",
  file: file("close_date"),
  keys: ["earliest", "zones", "...progress"],
  args: ["date", "force"],
  idempotent: true,
  reply: flag,
});

export const dispatch = defineScript({
  name: "daily_reminders.dispatch",
  file: file("dispatch"),
  keys: ["purgatory", "handover", "...counters"],
  args: ["count", "groups", "...items"],
  idempotent: false,
  reply: flag,
});
