import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);
const flags = (raw: number[]) => raw.map((flag) => flag === 1);

export const create = defineScript({
  name: "touch_links.create",
  file: file("create"),
  keys: ["buffer", "earliest", "...days"],
  args: ["...items"],
  idempotent: false,
  reply: flags,
});

/** Idempotent: what is gone is not ours any more. */
export const release = defineScript({
  name: "touch_links.release",
  file: file("release"),
  keys: ["buffer", "earliest", "...days"],
  args: ["...items"],
  idempotent: true,
  reply: flags,
});

export type PersistOutcome = "queued" | "duplicated" | "dropped";

export const queuePersist = defineScript({
  name: "touch_links.queue_persist",
  file: file("queue_persist"),
  keys: ["buffer", "to_persist", "purgatory", "earliest", "...days"],
  args: ["due", "...items"],
  idempotent: false,
  reply: (raw: PersistOutcome[]) => raw,
});

export type AbandonOutcome = "abandoned" | "already_persisting" | "dne";

export const abandon = defineScript({
  name: "touch_links.abandon",
  file: file("abandon"),
  keys: ["buffer", "to_persist", "purgatory", "earliest", "...days"],
  args: ["...items"],
  idempotent: false,
  reply: (raw: AbandonOutcome[]) => raw,
});

/**
 * What the script says of a use. `go_sql`: the link is not waiting, SQL decides. `repeated`: this very use is kept
 * already. `dropped`: one guess too many. `untracked`: it was only looked up.
 */
export type UseOutcome =
  | "buffered"
  | "delayed"
  | "go_sql"
  | "too_soon"
  | "parent_has_child"
  | "parent_not_found"
  | "untracked"
  | "repeated"
  | "dropped";

/**
 * Whether people are to be warned; and of a link that waits its page, its extra, its preview, its extra.
 */
export type TakenUse = readonly [outcome: UseOutcome, warn: boolean, ...link: string[]];

/** Idempotent by the uids of clicks; a limit may count a repeat twice, which is on the safe side. */
export const click = defineScript({
  name: "touch_links.click",
  file: file("click"),
  keys: ["buffer", "purgatory", "delayed", "signed_out", "warning", "earliest", "some_limit", "some_robots", "...days"],
  args: ["limit", "windows", "delayed_due", "uses", "...items"],
  idempotent: false,
  reply: (raw: string) => JSON.parse(raw) as readonly TakenUse[],
});

export const finishPersist = defineScript({
  name: "touch_links.finish_persist",
  file: file("finish_persist"),
  keys: ["purgatory", "buffer", "to_persist", "...counters"],
  args: ["...items"],
  idempotent: true,
  reply: flags,
});

export const finishLeaks = defineScript({
  name: "touch_links.finish_leaks",
  file: file("finish_leaks"),
  keys: ["buffer", "to_persist", "purgatory", "earliest", "...days"],
  args: ["...items"],
  idempotent: true,
  reply: flags,
});

export const finishDelayed = defineScript({
  name: "touch_links.finish_delayed",
  file: file("finish_delayed"),
  keys: ["purgatory", "delayed", "...counters"],
  args: ["...items"],
  idempotent: true,
  reply: flags,
});

export const readLinks = defineScript({
  name: "touch_links.read_links",
  file: file("read_links"),
  keys: ["buffer"],
  args: ["...codes"],
  idempotent: true,
  reply: (raw: [string[], string[]][]) => raw.map(([link, clicks]) => ({ link, clicks })),
});

export const readDelayed = defineScript({
  name: "touch_links.read_delayed",
  file: file("read_delayed"),
  keys: ["delayed", "purgatory", "buffer", "links_purgatory"],
  args: ["...uids"],
  idempotent: true,
  reply: (raw: [string[], number, number][]) =>
    raw.map(([click, link, parent]) => ({ click, linkWaits: link === 1, parentWaits: parent === 1 })),
});
