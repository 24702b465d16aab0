/**
 * How far a timezone's wall clock is from UTC, as stretches of constant offset. The platform only answers for single
 * instants and slowly, so each zone is explored once, in the years that are asked for, and remembered.
 */
export interface OffsetPeriod {
  /** The first unix second of this offset, as far as explored. */
  readonly start: number;
  /** The first unix second of the next offset. */
  readonly end: number;
  /** Seconds to add to unix time for the wall clock. */
  readonly offset: number;
}

export interface Zone {
  /** The stretch that holds this whole unix second. Its ends may lie where exploring stopped, inside the real stretch. */
  periodAt(second: number): OffsetPeriod;
}

const DAY = 86_400;
const EXPLORED_AT_ONCE = 400 * DAY;
/** Beyond these, the calendar of the platform ends. */
const EARLIEST = -8.64e12 + EXPLORED_AT_ONCE;
const LATEST = 8.64e12 - EXPLORED_AT_ONCE;

const zones = new Map<string, Zone>();

export function zoneOf(name: string): Zone {
  const known = zones.get(name);
  if (known) return known;
  const zone = exploreZone(offsetsOf(name));
  zones.set(name, zone);
  return zone;
}

function offsetsOf(name: string): (second: number) => number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  return (second) => {
    const found = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(format.format(second * 1000));
    if (!found?.[1]) return 0;
    const size = Number(found[2]) * 3600 + Number(found[3]) * 60 + Number(found[4] ?? 0);
    return found[1] === "-" ? -size : size;
  };
}

function exploreZone(offsetAt: (second: number) => number): Zone {
  let periods: OffsetPeriod[] = [];

  /** The stretches between two instants, by looking once a day and halving where the offset changed. */
  const explore = (from: number, to: number): OffsetPeriod[] => {
    const found: OffsetPeriod[] = [];
    let start = from;
    let offset = offsetAt(from);
    for (let day = from; day < to; day += DAY) {
      const next = Math.min(day + DAY, to);
      const nextOffset = offsetAt(next);
      if (nextOffset === offset) continue;
      let [unchanged, changed] = [day, next];
      while (changed - unchanged > 1) {
        const middle = Math.floor((unchanged + changed) / 2);
        if (offsetAt(middle) === offset) unchanged = middle;
        else changed = middle;
      }
      found.push({ start, end: changed, offset });
      start = changed;
      offset = nextOffset;
    }
    found.push({ start, end: to, offset });
    return found;
  };

  const join = (earlier: OffsetPeriod[], later: OffsetPeriod[]): OffsetPeriod[] => {
    const [last, first] = [earlier.at(-1), later[0]];
    if (!last || !first || last.offset !== first.offset) return [...earlier, ...later];
    return [...earlier.slice(0, -1), { start: last.start, end: first.end, offset: first.offset }, ...later.slice(1)];
  };

  const cover = (second: number): void => {
    if (second < EARLIEST || second > LATEST) throw new RangeError(`${second} is no unix time in seconds`);
    if (periods.length === 0) periods = explore(second - EXPLORED_AT_ONCE, second + EXPLORED_AT_ONCE);
    while (second < periods[0]!.start)
      periods = join(explore(periods[0]!.start - EXPLORED_AT_ONCE, periods[0]!.start), periods);
    while (second >= periods.at(-1)!.end)
      periods = join(periods, explore(periods.at(-1)!.end, periods.at(-1)!.end + EXPLORED_AT_ONCE));
  };

  return {
    periodAt(second) {
      cover(second);
      let [low, high] = [0, periods.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (periods[middle]!.start <= second) low = middle;
        else high = middle - 1;
      }
      return periods[low]!;
    },
  };
}
