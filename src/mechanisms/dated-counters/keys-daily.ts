import { chartFrame } from "../../kernel/keyspace/frames.ts";
import {
  type ChannelName,
  channel,
  family,
  hash,
  integer,
  type KeyName,
  mapOf,
  mayExpire,
  type Origin,
  string,
} from "../../kernel/keyspace/index.ts";

export interface DailyKeysPlan {
  /** `push_tickets`, or with parts: `sign_in_with_oseh:authorize`. */
  readonly name: string;
  /** The family of keys whose scripts count it. */
  readonly keysFamily: string;
  readonly title: string;
  /** The word on the channel of its charts; undefined: they are not told to others. */
  readonly channel: string | undefined;
  readonly hasBreakdowns: boolean;
  readonly origin: Origin;
  /** Seconds for which a stored day stays. */
  readonly keep: number | undefined;
}

export interface DailyKeys {
  /** For the catalogue. */
  readonly declared: object;
  readonly family: string;
  day(date: number): KeyName<"hash">;
  extra(date: number, event: string): KeyName<"hash">;
  earliest(): KeyName<"string">;
  readonly channel: ChannelName | undefined;
}

const DATE = /\d+/;
const EVENT = /[a-z][a-z0-9_]*/;
const counts = (field: string) => mapOf(integer, { shape: `${field} → count` });

/** The keys and the channel that one family of daily statistics has; all families have the same. */
export function dailyKeys({ name, keysFamily, title, origin, ...plan }: DailyKeysPlan): DailyKeys {
  // The types below only need to know the parameters; the family's name is text like any other.
  const prefix = `stats:${name}:daily` as "stats:daily";
  const ttl =
    plan.keep === undefined ? {} : { ttl: mayExpire(plan.keep, `${plan.keep} s once its day is in SQL, none before`) };
  const always = {
    day: hash(`${prefix}:{unix_date}`, counts("event"), {
      doc: `${title}: how often each event happened on that day`,
      params: { unix_date: DATE },
      origin,
      ...ttl,
    }),
    earliest: string(`${prefix}:earliest`, integer, {
      doc: `${title}: the earliest day that may not be in SQL yet`,
      origin,
    }),
  };
  const broken = {
    extra: hash(`${prefix}:{unix_date}:extra:{event}`, counts("breakdown key"), {
      doc: `${title}: how an event of that day divides over the keys of its breakdown`,
      params: { unix_date: DATE, event: EVENT },
      origin,
      ...ttl,
    }),
  };
  const told = {
    charts: channel(`ps:stats:${plan.channel}:daily` as "ps:stats:daily", chartFrame, {
      doc: `${title}: charts of finished days, told by the instance that built them`,
      origin,
    }),
  };
  const keys = family(keysFamily, { ...always, ...broken, ...told });
  const declared = family(keysFamily, {
    ...always,
    ...(plan.hasBreakdowns ? broken : {}),
    ...(plan.channel === undefined ? {} : told),
  });
  return {
    declared,
    family: keysFamily,
    day: (unix_date) => keys.day({ unix_date }),
    extra(unix_date, event) {
      if (!plan.hasBreakdowns) throw new TypeError(`${name} has no breakdowns`);
      return keys.extra({ unix_date, event });
    },
    earliest: () => keys.earliest(),
    channel: plan.channel === undefined ? undefined : keys.charts(),
  };
}
