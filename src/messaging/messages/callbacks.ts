import type { Context } from "../../jobs/context.ts";
import { type FailedJob, parseEntry } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { decodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { eachOfRenderedList, type Sighting } from "../../mechanisms/message-log/index.ts";

type LookContext = Pick<Context, "redis">;

const CATEGORIES = [1, 2] as const;
const LARGEST_STORY = 1_048_576;
const MARK = '"data_raw":"';
const SCANNED = 1_000;

/** What callbacks call a message of each channel in the story they are told. */
const CHANNELS = { attempt: "push", sms: "sms", email: "email" } as const;

/** Messages whose callback waits, runs or failed: they are in no queue of their channel meanwhile. */
export async function callbacksOf(ctx: LookContext, uids: readonly string[]): Promise<readonly Sighting[]> {
  const wanted = new Set(uids);
  const seen: Sighting[] = [];
  const { commands, topology } = ctx.redis;
  const look = (raw: string | Buffer, place: string, state: string, more: Partial<Sighting> = {}) => {
    const found = callbackIn(raw.toString(), wanted);
    if (found) seen.push({ ...found.sighting, place, state: `${state}: ${found.name}`, ...more });
  };

  const hot = [jobKeys.hot(), ...CATEGORIES.map((category) => jobKeys.hotByCategory({ category }))];
  for (const key of hot)
    for (const copy of topology.copies(key))
      for await (const { raw, ahead } of eachOfRenderedList(ctx, copy))
        look(raw, key, "has a callback that waits", { ahead });

  for (const copy of topology.copies(jobKeys.delayed()))
    for await (const [raw, score] of scan(ctx, "zscan", copy))
      look(raw, jobKeys.delayed(), "has a callback that waits for its next try", { due: Number(score) });

  const workers = await commands.zrange(topology.key(jobKeys.workers()), "0", "-1");
  const running = workers.map((worker_uid) => jobKeys.running({ worker_uid }) as KeyName);
  for (const key of running)
    for (const copy of topology.copies(key))
      for await (const [, raw] of scan(ctx, "hscan", copy)) look(raw, key, "has a callback that runs");

  for (const copy of topology.copies(jobKeys.failed()))
    for await (const { raw } of eachOfRenderedList(ctx, copy)) {
      const failure = failureIn(raw);
      if (failure)
        look(failure.raw, jobKeys.failed(), "has a callback that failed, see `carillon jobs failed`", {
          since: failure.failed_at,
        });
    }
  return seen;
}

async function* scan(
  { redis }: LookContext,
  command: "zscan" | "hscan",
  name: string,
): AsyncGenerator<readonly [string, string]> {
  let cursor = "0";
  do {
    const [next, found] = await redis.commands[command](name, cursor, "COUNT", SCANNED);
    for (let at = 0; at < found.length; at += 2) yield [found[at]!, found[at + 1]!];
    cursor = next;
  } while (cursor !== "0");
}

function failureIn(raw: Buffer): FailedJob | undefined {
  try {
    return JSON.parse(raw.toString()) as FailedJob;
  } catch {
    return undefined;
  }
}

/** The message that a job is the callback of, if it is one of those that are looked for. */
function callbackIn(raw: string, wanted: ReadonlySet<string>): { name: string; sighting: Sighting } | undefined {
  if (!raw.includes(MARK)) return undefined;
  const parsed = parseEntry(raw);
  if (!parsed.ok || typeof parsed.job.kwargs.data_raw !== "string") return undefined;
  let story: unknown;
  try {
    story = decodeDataRaw(parsed.job.kwargs.data_raw, { maxBytes: LARGEST_STORY });
  } catch {
    return undefined;
  }
  for (const [field, channel] of Object.entries(CHANNELS)) {
    const { uid, retry } = (story as Record<string, { uid?: unknown; retry?: unknown } | undefined>)?.[field] ?? {};
    if (typeof uid !== "string" || !wanted.has(uid)) continue;
    const sighting: Sighting = {
      uid,
      channel,
      place: "",
      state: "",
      since: parsed.job.queued_at,
      due: null,
      ahead: null,
      failed_tries: typeof retry === "number" ? retry : null,
      provider: null,
      provider_id: null,
    };
    return { name: parsed.job.name, sighting };
  }
  return undefined;
}
