import { dailyStats } from "../../mechanisms/dated-counters/index.ts";

/** What became of touches until they were handed to a channel, dated by when they were queued. */
export const touchSendStats = dailyStats({
  family: "touch_send",
  keysFamily: "touch",
  title: "touches",
  table: "touch_send_stats",
  held: 2,
  origin: "documented",
  alias: { daily: "/touch/daily_touch_send", partial: "/touch/partial_touch_send_stats" },
  events: {
    queued: {},
    attempted: { by: "{event}:{channel}" },
    reachable: { by: "{event}:{channel}:{destinations}" },
    unreachable: { by: "{event}:{channel}" },
    stale: {},
  },
  balances: [{ sum: ["attempted"], equals: ["reachable", "unreachable", "stale"] }],
});

/** Touches whose end was never told, dated when that was found. */
export const touchStaleStats = dailyStats({
  family: "touch_stale",
  keysFamily: "touch",
  title: "touches without an end",
  table: "touch_stale_stats",
  held: 2,
  origin: "documented",
  alias: { daily: "/touch/daily_touch_stale", partial: "/touch/partial_touch_stale_stats" },
  events: { stale: {} },
});

export const stats = [touchSendStats, touchStaleStats];
