import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { FieldCodecs, HashCodec, KeyName } from "../../kernel/keyspace/index.ts";
import { alertQuarantined, quarantineEntry, quarantineOf, reasonOf } from "../quarantine/index.ts";
import { add, get, popDue, quarantine, removeIf, type Snapshot, takeStale, updateIf, type Values } from "./scripts.ts";

/** How many members one script call handles at most; more are paged by the caller. */
const MAX_MEMBERS_PER_CALL = 500;

const NO_COMPANIONS: Pending<unknown>["companions"] = {};

type PendingContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "log">;

export interface PendingSetPlan<T> {
  /** Members scored by when to look at them again; the hash of a member is `{set}:{member}`. */
  readonly set: KeyName<"zset">;
  readonly codec: HashCodec<T>;
  /** The hash field that counts changes, in families that have one: what `updateIf` compares. */
  readonly version?: Extract<keyof T, string>;
  /** Suffixes of the sets beside each hash: `remaining` for `{set}:{member}:remaining`. */
  readonly companions?: readonly string[];
  /** What `takeStale` notes in the hash. */
  readonly stale?: { readonly lastCalledAt?: Extract<keyof T, string>; readonly failures?: Extract<keyof T, string> };
  /** Where `removeIf` puts jobs. */
  readonly jobs?: KeyName<"list">;
}

export interface Pending<T> {
  readonly member: string;
  readonly dueAt: number;
  readonly value: T;
  readonly companions: Readonly<Record<string, readonly string[]>>;
}

export interface NewPending<T> {
  readonly member: string;
  readonly dueAt: number;
  readonly value: T;
  readonly companions?: Readonly<Record<string, readonly string[]>>;
}

/** Results in the order of what was asked, and how many broken members were cleared away on the way. */
export interface Healed<R> {
  readonly results: R;
  readonly healed: number;
}

export type UpdateAnswer =
  | { readonly ok: true; readonly version: number }
  | { readonly ok: false; readonly reason: "missing" | "changed" };
export type RemoveAnswer = { readonly ok: true } | { readonly ok: false; readonly reason: "missing" | "changed" };
export type TakeAnswer<T> =
  | ({ readonly ok: true } & Healed<Pending<T>[]>)
  | { readonly ok: false; readonly reason: "bump_not_later" };

/**
 * Things that wait for something that may never come: a receipt, an answer, a click.
 *
 *   absent ──add──▶ pending ──remove_if, pop_due──▶ absent
 *                   │    ▲
 *                   └────┘ update_if (version + 1), take_stale (put off, failure counted)
 *
 * Redis is authoritative, and a member is in the set exactly when its hash exists. Nothing is ever in flight outside the
 * set: who dies after `take_stale` costs one more interval. Whatever breaks the pairing, such as an eviction or a stray
 * DEL, is cleared away by the next call that meets it, counted, and warned of; a hash that still says something goes to
 * the quarantine, as does one that cannot be decoded.
 */
export class PendingSet<T> {
  readonly #plan: PendingSetPlan<T>;
  readonly #companions: readonly string[];
  /** The fields that every sound hash has, and no others; none where that is not so, or where sets lie beside it. */
  readonly #names: readonly string[];

  constructor(plan: PendingSetPlan<T>) {
    this.#plan = plan;
    this.#companions = plan.companions ?? [];
    this.#names = this.#companions.length === 0 ? namesOf(plan.codec) : [];
  }

  /** Per item: true when it was added, false when it was pending already. */
  async add(ctx: PendingContext, items: readonly NewPending<T>[]): Promise<Healed<boolean[]>> {
    if (withinCall(items.length) === 0) return { results: [], healed: 0 };
    const args = items.flatMap(({ member, dueAt, value, companions = {} }) => {
      const hash = this.#plan.codec.encode(value);
      if (this.#plan.version !== undefined && !hash.includes(this.#plan.version))
        throw new TypeError(`${this.#plan.set}: a new hash needs its ${this.#plan.version}`);
      const beside = this.#companions.flatMap((suffix) => [
        companions[suffix]?.length ?? 0,
        ...(companions[suffix] ?? []),
      ]);
      return [member, timeText(dueAt), hash.length, ...hash, ...beside];
    });
    const { healed, results } = await ctx.redis.run(add, this.#keys(), [...this.#common(ctx), ...args]);
    return this.#warn(
      ctx,
      healed,
      results.map((code) => code === 1),
    );
  }

  /** Members with their hashes at one moment; undefined for those that are not pending. */
  async get(ctx: PendingContext, members: readonly string[]): Promise<Healed<(Pending<T> | undefined)[]>> {
    if (withinCall(members.length) === 0) return { results: [], healed: 0 };
    const { healed, found } = await ctx.redis.run(get, this.#keys(), [
      ...this.#common(ctx),
      this.#names.length,
      ...this.#names,
      ...members,
    ]);
    const looked = found.map((one, at) => (one && !isSnapshot(one) ? this.#named(members[at]!, one) : lookedAt(one)));
    const decoded = await this.#decode(ctx, looked, "pending");
    return this.#warn(ctx, healed, decoded);
  }

  /** Changes fields, and optionally the due time, of members whose version is still the given one. */
  async updateIf(
    ctx: PendingContext,
    items: readonly { member: string; version: number; fields: Partial<T>; dueAt?: number }[],
  ): Promise<Healed<UpdateAnswer[]>> {
    if (withinCall(items.length) === 0) return { results: [], healed: 0 };
    this.#mustHaveVersion();
    const args = items.flatMap(({ member, version, fields, dueAt }) => {
      const hash = this.#plan.codec.encode(fields as T);
      return [member, version, dueAt === undefined ? "" : timeText(dueAt), hash.length, ...hash];
    });
    const { healed, results } = await ctx.redis.run(updateIf, this.#keys(), [...this.#common(ctx), ...args]);
    const answers = results.map((code): UpdateAnswer => (code > 0 ? { ok: true, version: code } : refusal(code)));
    return this.#warn(ctx, healed, answers);
  }

  /** Ends members, if a version is given only while it is still that, and queues the jobs of those that it ended. */
  async removeIf(
    ctx: PendingContext,
    items: readonly { member: string; version?: number; jobs?: readonly string[] }[],
  ): Promise<Healed<RemoveAnswer[]>> {
    if (withinCall(items.length) === 0) return { results: [], healed: 0 };
    if (items.some((item) => item.version !== undefined)) this.#mustHaveVersion();
    const { jobs } = this.#plan;
    if (!jobs && items.some((item) => item.jobs?.length)) throw new TypeError(`${this.#plan.set} names no job queue`);
    const args = items.flatMap(({ member, version, jobs: texts = [] }) => [
      member,
      version ?? "",
      texts.length,
      ...texts,
    ]);
    const { healed, results } = await ctx.redis.run(
      removeIf,
      [...this.#keys(), ...(jobs ? [jobs] : [])],
      [...this.#common(ctx), ...args],
    );
    const answers = results.map((code): RemoveAnswer => (code === 1 ? { ok: true } : refusal(code)));
    return this.#warn(ctx, healed, answers);
  }

  /** Overdue members, put off to `bumpTo`, with their hashes as they are then. */
  async takeStale(ctx: PendingContext, bumpTo: number, max = MAX_MEMBERS_PER_CALL): Promise<TakeAnswer<T>> {
    withinCall(max);
    const { lastCalledAt = "", failures = "" } = this.#plan.stale ?? {};
    const { healed, found } = await ctx.redis.run(takeStale, this.#keys(), [
      ...this.#common(ctx),
      timeText(bumpTo),
      max,
      lastCalledAt,
      failures,
    ]);
    if (healed === -1) return { ok: false, reason: "bump_not_later" };
    const decoded = await this.#decode(ctx, found.map(lookedAt), "pending");
    return {
      ok: true,
      ...this.#warn(
        ctx,
        healed,
        decoded.filter((item) => item !== undefined),
      ),
    };
  }

  /** Removes what is due at `dueBy` (default now) and returns what it was. Who dies with the answer loses it. */
  async popDue(
    ctx: PendingContext,
    dueBy = ctx.clock.now(),
    max = MAX_MEMBERS_PER_CALL,
  ): Promise<Healed<Pending<T>[]>> {
    withinCall(max);
    const { healed, found } = await ctx.redis.run(popDue, this.#keys(), [...this.#common(ctx), timeText(dueBy), max]);
    const decoded = await this.#decode(ctx, found.map(lookedAt), "removed");
    return this.#warn(
      ctx,
      healed,
      decoded.filter((item) => item !== undefined),
    );
  }

  #keys(): [string, string] {
    return [this.#plan.set, quarantineOf(this.#plan.set)];
  }

  #common(ctx: PendingContext): [string, string, string, string, string] {
    const { version, set } = this.#plan;
    return [version ?? "", this.#companions.join(","), set, timeText(ctx.clock.now()), randomToken()];
  }

  #named(member: string, values: Values): Found {
    const hash: Record<string, string> = {};
    for (let at = 0; at < this.#names.length; at++) hash[this.#names[at]!] = values[at]!;
    return { member, score: values.at(-1)!, hash, beside: [] };
  }

  /** What can be decoded; the rest goes to the quarantine, unless somebody changed it meanwhile. */
  async #decode(
    ctx: PendingContext,
    found: readonly (Found | null)[],
    state: "pending" | "removed",
  ): Promise<(Pending<T> | undefined)[]> {
    const broken: { found: Found; reason: string }[] = [];
    const decoded = found.map((one) => {
      if (!one) return undefined;
      const { member, score, hash, beside } = one;
      try {
        const { codec } = this.#plan;
        const value = codec.read ? codec.read(hash) : codec.decode(bytesOf(hash));
        const companions =
          this.#companions.length === 0
            ? NO_COMPANIONS
            : Object.fromEntries(this.#companions.map((suffix, index) => [suffix, beside[index]!]));
        return { member, dueAt: Number(score), value, companions };
      } catch (error) {
        broken.push({ found: one, reason: `${reasonOf(error)} (member ${member})` });
        return undefined;
      }
    });
    if (broken.length > 0) await this.#setAside(ctx, broken, state);
    return decoded;
  }

  async #setAside(
    ctx: PendingContext,
    broken: readonly { found: Found; reason: string }[],
    state: "pending" | "removed",
  ): Promise<void> {
    const { set, version } = this.#plan;
    const entries = broken.map(({ found: { member, hash }, reason }) => ({
      member,
      version: version === undefined ? "" : (hash[version] ?? ""),
      entry: quarantineEntry(ctx, set, JSON.stringify(hash), reason),
    }));
    if (state === "pending")
      await ctx.redis.run(quarantine, this.#keys(), [
        ...this.#common(ctx),
        ...entries.flatMap((item) => [item.member, item.version, item.entry]),
      ]);
    else {
      const list = ctx.redis.topology.scriptKeys([set, quarantineOf(set)])[1]!;
      await ctx.redis.commands.lpush(list, ...entries.map((item) => item.entry));
    }
    await alertQuarantined(ctx, set, entries.length, broken[0]!.reason);
  }

  #warn<R>(ctx: PendingContext, healed: number, results: R): Healed<R> {
    if (healed > 0)
      ctx.alerts.warning(`${this.#plan.set}:healed`, `${healed} members without a sound hash were cleared away`);
    return { results, healed };
  }

  #mustHaveVersion(): void {
    if (this.#plan.version === undefined) throw new TypeError(`${this.#plan.set} has no version field to compare`);
  }
}

export function pendingSet<T>(plan: PendingSetPlan<T>): PendingSet<T> {
  return new PendingSet(plan);
}

function refusal(code: number): { readonly ok: false; readonly reason: "missing" | "changed" } {
  return { ok: false, reason: code === 0 ? "missing" : "changed" };
}

/** A member as a script found it. */
interface Found {
  readonly member: string;
  readonly score: string;
  readonly hash: Readonly<Record<string, string>>;
  readonly beside: readonly (readonly string[])[];
}

function lookedAt(snapshot: Snapshot | null): Found | null {
  if (!snapshot) return null;
  const [member, score, flat, ...beside] = snapshot;
  const hash: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) hash[flat[at]!] = flat[at + 1]!;
  return { member, score, hash, beside };
}

const isSnapshot = (found: Snapshot | Values): found is Snapshot => Array.isArray(found[2]);

/** The names of a hash whose fields are all known and all there; none of any other. */
function namesOf(codec: object): readonly string[] {
  const known = "fields" in codec ? Object.entries(codec.fields as FieldCodecs) : [];
  return known.some(([, field]) => "optional" in field) ? [] : known.map(([name]) => name);
}

const bytesOf = (hash: Readonly<Record<string, string>>): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(hash).map(([name, text]) => [name, Buffer.from(text)]));

function withinCall(members: number): number {
  if (members > MAX_MEMBERS_PER_CALL)
    throw new RangeError(`${members} members in one call: at most ${MAX_MEMBERS_PER_CALL}, the rest in further calls`);
  return members;
}

function timeText(seconds: number): string {
  return Number.isInteger(seconds) ? String(seconds) : seconds.toFixed(6);
}
