import { expect } from "vitest";
import { z } from "zod";
import { domain } from "../../src/domain.ts";
import { jobKeys } from "../../src/jobs/index.ts";
import { defineRunner } from "../../src/jobs/runner.ts";
import { calendarIn } from "../../src/mechanisms/dated-counters/index.ts";
import { keys as reminderKeys } from "../../src/messaging/reminders/keys.ts";
import { weekdayBit } from "../../src/messaging/reminders/window.ts";
import type { TouchEntry } from "../../src/messaging/touch/entries.ts";
import { keys as touchKeys } from "../../src/messaging/touch/keys.ts";
import type { Weather } from "./days.ts";
import type { PeopleHouse } from "./people-house.ts";

const DAY = 86_400;

/** The callback of touches that the application sends by itself. */
export const ended = defineRunner({
  name: "runners.simulated.ended",
  category: 2,
  kwargs: z.strictObject({ touch: z.string(), how: z.enum(["well", "badly"]) }),
  doc: "Hears how a touch ended.",
  run: async () => {},
});
export const application = domain({ name: "simulated", runners: [ended] });

interface Version {
  readonly sub: string;
  readonly channel: string;
  readonly start: number;
  readonly end: number;
  readonly mask: number;
  readonly timezone: string;
  readonly from: number;
  until: number;
}

/** A local day of a registration, and the times that it was given for it. */
interface Member {
  readonly uid: string;
  readonly date: number;
  readonly times: { readonly at: number; readonly seen: number }[];
  waits: boolean;
}

const LINK_CALLBACKS = new Set(["runners.touch.persist_links", "runners.touch.abandon_links"]);
/** A job that waits for a row: a worker would try it again after a while. */
const PATIENT = "runners.touch.finish_unsubscribing";

/**
 * What was seen from outside while days went by: touches, how often each was told its end, the times that reminders got,
 * and the registrations as they were. Afterwards it says what should have been.
 */
export class Ledger {
  readonly touches = new Map<string, TouchEntry>();
  /** How often the end of something was told: of an application's touch by its uid, of links by their codes. */
  readonly ends = new Map<string, number>();
  readonly ended = { well: 0, badly: 0 };
  /** Callbacks of channels that were lost on the way. */
  lost = 0;
  dropping = false;
  readonly #members = new Map<string, Member>();
  readonly #versions = new Map<string, Version[]>();
  readonly #house: PeopleHouse;
  readonly #weather: Weather;
  readonly #patient: { raw: string; tries: number }[] = [];

  constructor(house: PeopleHouse, weather: Weather) {
    this.#house = house;
    this.#weather = weather;
    const { commands, topology } = house.base.redis;
    const hot = topology.key(jobKeys.hot());
    const [take, putBack] = [commands.lpop.bind(commands), commands.lpush.bind(commands)];
    Object.assign(commands, {
      lpop: async (key: string, count: number) => {
        const raws = (await take(key, count)) as string[] | null;
        return key === hot && raws ? raws.filter((raw) => this.#hear(raw)) : raws;
      },
      // What a dead process had taken is queued again, and will be heard again.
      lpush: (key: string, ...raws: string[]) => {
        if (key === hot) for (const raw of raws) this.#note(raw, -1);
        return putBack(key, ...raws);
      },
    });
  }

  /** Whether the job is to run now. */
  #hear(raw: string): boolean {
    const { name } = JSON.parse(raw) as { name: string };
    if (name === PATIENT) {
      this.#patient.push({ raw, tries: 0 });
      return false;
    }
    if (this.dropping && /^runners\.touch\.(sms|email)_success_handler$/.test(name) && this.#weather.strikes(0.004)) {
      this.lost += 1;
      return false;
    }
    this.#note(raw, 1);
    return true;
  }

  #note(raw: string, times: 1 | -1): void {
    const { name, kwargs } = JSON.parse(raw) as {
      name: string;
      kwargs: { codes?: string[]; touch?: string; how?: string };
    };
    const isLinks = LINK_CALLBACKS.has(name);
    if (!isLinks && name !== ended.name) return;
    const of = isLinks ? kwargs.codes!.join() : kwargs.touch!;
    this.ends.set(of, (this.ends.get(of) ?? 0) + times);
    this.ended[name === "runners.touch.persist_links" || kwargs.how === "well" ? "well" : "badly"] += times;
  }

  /** Runs what waits for rows, as a worker does after a pause; after some tries it is given up. */
  async patience(): Promise<void> {
    const runner = this.#house.ctx.jobs.runners.get(PATIENT)!;
    for (const waiting of this.#patient.splice(0)) {
      const { kwargs } = JSON.parse(waiting.raw) as { kwargs: object };
      await this.#house.run(runner, this.#house.ctx, kwargs).catch(() => {
        if (++waiting.tries < 3) this.#patient.push(waiting);
      });
    }
  }

  async seeTouches(): Promise<void> {
    const { commands, topology } = this.#house.base.redis;
    for (const key of [touchKeys.sendPurgatory(), touchKeys.toSend()])
      for (const raw of await commands.lrange(topology.key(key), 0, -1)) {
        const touch = JSON.parse(raw) as TouchEntry;
        this.touches.set(touch.uid, touch);
      }
  }

  async seeTimes(): Promise<void> {
    const { commands, topology } = this.#house.base.redis;
    const waiting = new Set<string>();
    const seen = this.#house.base.clock.now();
    for (const key of [reminderKeys.sendPurgatory(), reminderKeys.queued()]) {
      const flat = await commands.zrange(topology.key(key), 0, "-1", "WITHSCORES");
      for (let at = 0; at < flat.length; at += 2) {
        const name = flat[at]!;
        waiting.add(name);
        const { uid, unix_date: date } = JSON.parse(name) as { uid: string; unix_date: number };
        const member = this.#members.get(name) ?? { uid, date, times: [], waits: false };
        if (!member.waits) member.times.push({ at: Number(flat[at + 1]), seen });
        member.waits = true;
        this.#members.set(name, member);
      }
    }
    for (const [name, member] of this.#members) if (!waiting.has(name)) member.waits = false;
  }

  async seeRegistrations(): Promise<void> {
    const now = this.#house.base.clock.now();
    const rows = await this.#house.query<Omit<Version, "from" | "until"> & { uid: string }>(
      `select held.uid, users.sub, held.channel, held.start_time as start, held.end_time as end,
         held.day_of_week_mask as mask, held.timezone
       from user_daily_reminders as held join users on users.id = held.user_id`,
    );
    for (const { uid, ...row } of rows) {
      const versions = this.#versions.get(uid) ?? [];
      const last = versions.at(-1);
      const isSame = last && (["start", "end", "mask", "timezone"] as const).every((name) => last[name] === row[name]);
      if (isSame) last.until = now;
      else versions.push({ ...row, from: now, until: now });
      this.#versions.set(uid, versions);
    }
  }

  get reminders(): number {
    return [...this.touches.values()].filter((touch) => touch.touch_point_event_slug === "daily_reminder").length;
  }
  get times(): number {
    return [...this.#members.values()].reduce((sum, { times }) => sum + times.length, 0);
  }

  /** Every touch that has callbacks was told its end once. A short code that one gave up may be another's later. */
  expectEnds(): void {
    const expected = new Map<string, string[]>();
    for (const { uid, success_callback: callback } of this.touches.values()) {
      if (!callback) continue;
      const { codes, touch } = callback.kwargs as { codes?: string[]; touch?: string };
      const of = codes?.join() ?? touch!;
      expected.set(of, [...(expected.get(of) ?? []), uid]);
    }
    const wrong: unknown[] = [];
    for (const of of new Set([...expected.keys(), ...this.ends.keys()])) {
      const [uids, times] = [expected.get(of) ?? [], this.ends.get(of) ?? 0];
      if (times !== uids.length) wrong.push({ of, uids, times });
    }
    expect.soft(wrong).toEqual([]);
  }

  /**
   * Registrations got one time a local day, inside their hours, on the days that they chose and on no other, each as it
   * was when the time was given. Whoever moves to where a date begins anew may be given another time for it, and is not
   * reminded twice.
   */
  expectTimes({ from, until }: { readonly from: number; readonly until: number }): number {
    const wrong: unknown[] = [];
    let days = 0;
    for (const [uid, versions] of this.#versions)
      for (const version of versions) {
        const calendar = calendarIn(version.timezone);
        for (let date = calendar.unixDate(version.from); date <= calendar.unixDate(version.until); date++) {
          const begins = calendar.startOf(date) + version.start;
          const ends = calendar.startOf(date) + version.end;
          // Zones that somebody is the first to live in join on the next day, so a new registration rests for a while.
          if (begins < Math.max(version.from + DAY, from) || ends > Math.min(version.until - 2 * 3600, until)) continue;
          const times = this.#members.get(JSON.stringify({ uid, unix_date: date }))?.times ?? [];
          const given = times.filter(({ seen }) => seen > version.from && seen <= version.until);
          const hadOne = times.some(({ seen }) => seen <= version.from);
          const most = (version.mask & weekdayBit(date)) === 0 ? 0 : 1;
          days += most;
          const fit = given.every(({ at }) => at >= begins && at <= ends);
          if (given.length > most || given.length < (hadOne ? 0 : most) || !fit)
            wrong.push({ uid, date, ...version, begins, ends, times });
        }
      }
    expect.soft(wrong.slice(0, 5)).toEqual([]);
    return days;
  }

  /** Nobody got more reminders on a channel than there were local days with a time for it. */
  expectReminders(): void {
    const owners = new Map([...this.#versions].map(([uid, [version]]) => [uid, `${version!.sub} ${version!.channel}`]));
    const dates = new Map<string, number>();
    for (const { uid } of this.#members.values()) {
      const owner = owners.get(uid)!;
      dates.set(owner, (dates.get(owner) ?? 0) + 1);
    }
    const got = new Map<string, number>();
    for (const { user_sub, channel, touch_point_event_slug } of this.touches.values()) {
      if (touch_point_event_slug !== "daily_reminder") continue;
      got.set(`${user_sub} ${channel}`, (got.get(`${user_sub} ${channel}`) ?? 0) + 1);
    }
    const wrong = [...got].filter(([owner, count]) => count > (dates.get(owner) ?? 0));
    const told = wrong.map(([owner]) => ({
      owner,
      times: [...this.#members.values()].filter(({ uid }) => owners.get(uid) === owner),
      versions: [...this.#versions.values()].flat().filter(({ sub, channel }) => `${sub} ${channel}` === owner),
      touches: [...this.touches.values()].flatMap(({ user_sub, channel, queued_at, uid }) =>
        `${user_sub} ${channel}` === owner ? [{ uid, queued_at }] : [],
      ),
    }));
    expect.soft(told).toEqual([]);
  }
}
