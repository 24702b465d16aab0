import { type Invariant, type InvariantContext, type KeyName, seenTwice } from "../../kernel/keyspace/index.ts";
import { brokenOnOpenDays } from "../../mechanisms/dated-counters/index.ts";
import { leftInPurgatories } from "../../mechanisms/run-report/index.ts";
import { type BufferedClick, bufferedClick, delayedHash, linkHash } from "./entries.ts";
import { CODE_WINDOW, keys, SIGNED_OUT_WINDOW, WARNING_WINDOW } from "./keys.ts";
import { oldLinks } from "./old-links.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";

const PAGE = 500;
/** The search for leaks runs every quarter of an hour and may have a full page. */
const LATE = 1_200;

async function* membersOf({ redis: { commands, topology } }: InvariantContext, key: KeyName<"zset">) {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(key), start, String(start + PAGE - 1), "WITHSCORES");
    if (flat.length === 0) return;
    const page: { readonly member: string; readonly score: number }[] = [];
    for (let at = 0; at < flat.length; at += 2) page.push({ member: flat[at]!, score: Number(flat[at + 1]) });
    yield page;
  }
}

/** Pages of what stands in place of `x` in a key's name, over all such keys there are. */
async function* namesLike({ redis: { commands, topology } }: InvariantContext, example: string) {
  const prefix = topology.key(example).slice(0, -1);
  let cursor = "0";
  do {
    const [next, found] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
    cursor = next;
    const names = found.map((name) => name.slice(prefix.length)).filter((name) => !name.includes(":"));
    if (names.length > 0) yield names;
  } while (cursor !== "0");
}

async function scoresOf({ redis: { commands, topology } }: InvariantContext, key: KeyName<"zset">, members: string[]) {
  return commands.zmscore(topology.key(key), ...members);
}

const readable = <T>(read: () => T): T | string => {
  try {
    return read();
  } catch (error) {
    return (error as Error).message;
  }
};

async function buffered(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  for await (const page of membersOf(ctx, keys.buffer())) {
    const hashes = await Promise.all(
      page.map(({ member: code }) => commands.hgetallBuffer(topology.key(keys.link({ code })))),
    );
    for (const [at, { member: code, score }] of page.entries()) {
      const link = readable(() => linkHash.decode(hashes[at]!));
      if (typeof link === "string") violations.push(`a link of touch_links:buffer cannot be read: ${link}`);
      else if (link.code !== code) violations.push("a link of touch_links:buffer has another code than its key");
      else if (link.created_at !== score) violations.push(`the link ${link.uid} has another time than its place`);
    }
  }
  for await (const codes of namesLike(ctx, keys.link({ code: "x" }))) {
    const scores = await scoresOf(ctx, keys.buffer(), codes);
    violations.push(...codes.filter((_, at) => scores[at] === null).map(() => "a link is not in touch_links:buffer"));
  }
  return violations;
}

async function schedules(ctx: InvariantContext): Promise<readonly string[]> {
  const violations: string[] = [];
  for await (const page of membersOf(ctx, keys.toPersist())) {
    const codes = page.map(({ member }) => member);
    const [storing, waiting] = await Promise.all([
      scoresOf(ctx, keys.persistPurgatory(), codes),
      scoresOf(ctx, keys.buffer(), codes),
    ]);
    for (const at of codes.keys()) {
      if (storing[at] !== null) violations.push("a code is in touch_links:to_persist and in its purgatory");
      if (waiting[at] === null) violations.push("a code of touch_links:to_persist is not in touch_links:buffer");
    }
  }
  return violations;
}

async function clicks(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  for await (const codes of namesLike(ctx, keys.clicks({ code: "x" }))) {
    const waiting = await scoresOf(ctx, keys.buffer(), codes);
    for (const [at, code] of codes.entries()) {
      if (waiting[at] === null) violations.push("clicks wait for a link that is not in touch_links:buffer");
      const raws = await commands.lrangeBuffer(topology.key(keys.clicks({ code })), 0, -1);
      violations.push(...(await clickFaults(ctx, code, raws)));
    }
  }
  for await (const uids of namesLike(ctx, keys.clickIndex({ uid: "x" }))) {
    const held = await Promise.all(uids.map((uid) => commands.hget(topology.key(keys.clickIndex({ uid })), "code")));
    const codes = [...new Set(held.flatMap((code) => code ?? []))];
    const waiting = codes.length === 0 ? [] : await scoresOf(ctx, keys.buffer(), codes);
    const gone = new Set(codes.filter((_, at) => waiting[at] === null));
    for (const [at, uid] of uids.entries())
      if (held[at] === null || gone.has(held[at]!)) violations.push(`the click ${uid} is indexed and its link is gone`);
  }
  return violations;
}

async function clickFaults(ctx: InvariantContext, code: string, raws: readonly Buffer[]): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const read = raws.map((raw) => readable(() => bufferedClick.decode(raw)));
  const faults = read.flatMap((click) => (typeof click === "string" ? [`a click cannot be read: ${click}`] : []));
  const found = read.filter((click): click is BufferedClick => typeof click !== "string");
  const parents = new Set(found.map(({ parent_uid }) => parent_uid));
  const first = found.filter(({ track_type }) => track_type === "on_click");
  const indexed = await Promise.all(
    first.map(async ({ uid }) => ({
      held: await commands.hgetall(topology.key(keys.clickIndex({ uid }))),
      child: await commands.exists(topology.key(keys.childOf({ uid }))),
    })),
  );
  for (const [at, { uid }] of first.entries()) {
    const { held, child } = indexed[at]!;
    if (held.code !== code) faults.push(`the click ${uid} is not indexed under its link`);
    else if ((held.has_child === "1") !== (parents.has(uid) || child === 1))
      faults.push(`the index of the click ${uid} is wrong about who signed in after it`);
  }
  return faults;
}

async function delayed(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  for (const key of [keys.delayed(), keys.delayedPurgatory()])
    for await (const page of membersOf(ctx, key)) {
      const hashes = await Promise.all(
        page.map(({ member: uid }) => commands.hgetallBuffer(topology.key(keys.delayedClick({ uid })))),
      );
      const other = key === keys.delayed() ? keys.delayedPurgatory() : keys.delayed();
      const twice = await scoresOf(
        ctx,
        other,
        page.map(({ member }) => member),
      );
      for (const [at, { member: uid }] of page.entries()) {
        const click = readable(() => delayedHash.decode(hashes[at]!));
        if (typeof click === "string") violations.push(`the waiting click ${uid} cannot be read: ${click}`);
        else violations.push(...(await childFaults(ctx, uid, click)));
        if (twice[at] !== null) violations.push(`the click ${uid} waits and is being stored`);
      }
    }
  for await (const uids of namesLike(ctx, keys.delayedClick({ uid: "x" }))) {
    const [waiting, storing] = await Promise.all([
      scoresOf(ctx, keys.delayed(), uids),
      scoresOf(ctx, keys.delayedPurgatory(), uids),
    ]);
    for (const [at, uid] of uids.entries())
      if (waiting[at] === null && storing[at] === null) violations.push(`the click ${uid} waits nowhere`);
  }
  for await (const parents of namesLike(ctx, keys.childOf({ uid: "x" })))
    for (const parent of parents) {
      const child = await commands.get(topology.key(keys.childOf({ uid: parent })));
      const flat = await commands.hgetall(topology.key(keys.delayedClick({ uid: child ?? "" })));
      if (flat.track_type !== "post_login" || flat.parent_uid !== parent)
        violations.push(`the click ${parent} is said to have a child that is not its own`);
    }
  return violations;
}

async function childFaults(
  { redis: { commands, topology } }: InvariantContext,
  uid: string,
  click: ReturnType<typeof delayedHash.decode>,
): Promise<readonly string[]> {
  if (click.track_type !== "post_login") return [];
  const child = await commands.get(topology.key(keys.childOf({ uid: click.parent_uid })));
  return child === uid ? [] : [`the waiting sign-in ${uid} is not noted at its click`];
}

async function ages(ctx: InvariantContext): Promise<readonly string[]> {
  const now = ctx.clock.now();
  const before = now - ctx.config.get(settings.leakAge) - LATE;
  for (let skip = 0; ; ) {
    const page = await oldLinks(ctx, { before, now, skip });
    if (!page) return [];
    if (page.leaked.length > 0) return [`${page.leaked.length} links in touch_links:buffer are older than any may be`];
    skip += page.held;
  }
}

/** A limit without an end would never let anybody in again. */
async function limits(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const longest = async (name: string, seconds: number) => {
    const left = await commands.pttl(name);
    return left === -1 || left > seconds * 1000 ? [`a limit of uses lasts longer than ${seconds} s`] : [];
  };
  const violations = [
    ...(await longest(topology.key(keys.signedOutLimit()), SIGNED_OUT_WINDOW)),
    ...(await longest(topology.key(keys.warningLimit()), WARNING_WINDOW)),
  ];
  for await (const codes of namesLike(ctx, keys.codeLimit({ code: "x" }))) {
    const found = await Promise.all(codes.map((code) => longest(topology.key(keys.codeLimit({ code })), CODE_WINDOW)));
    violations.push(...found.flat());
  }
  return violations;
}

export const invariants: readonly Invariant[] = [
  {
    name: "touch_links:limits_end",
    doc: "Every limit of uses ends within its window.",
    check: seenTwice(limits),
  },
  {
    name: "touch_links:buffer_is_whole",
    doc: "Every code in touch_links:buffer has a hash that agrees with it, and no hash stands alone.",
    check: seenTwice(buffered),
  },
  {
    name: "touch_links:one_schedule",
    doc: "A link that is to be stored is in the buffer, and is not being stored at the same time.",
    check: seenTwice(schedules),
  },
  {
    name: "touch_links:clicks_have_links",
    doc: "Clicks in the buffer belong to links in the buffer and can be found by their uid.",
    check: seenTwice(clicks),
  },
  {
    name: "touch_links:delayed_is_whole",
    doc: "Every click that waits is in one place with its hash, and a sign-in is noted at the click it followed.",
    check: seenTwice(delayed),
  },
  {
    name: "touch_links:purgatories_are_held",
    doc: "What a run of storing links or clicks took, it finished, unless it was stopped or died; what a dead run left is taken up within ten minutes.",
    check: seenTwice((ctx) =>
      leftInPurgatories(ctx, [
        { purgatory: keys.persistPurgatory(), lock: keys.persistLock(), report: keys.persistReport },
        { purgatory: keys.delayedPurgatory(), lock: keys.delayedLock(), report: keys.delayedReport },
      ]),
    ),
  },
  {
    name: "touch_links:no_old_links",
    doc: "No link is in the buffer for longer than the search for leaks allows, unless its touch has not ended.",
    check: seenTwice(ages),
  },
  {
    name: "touch_links:counts_add_up",
    doc: "On every open day the counts of links and clicks add up.",
    check: seenTwice((ctx) => brokenOnOpenDays(ctx, [linkStats])),
  },
];
