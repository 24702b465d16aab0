import { family, hash, integer, mapOf, string } from "../../kernel/keyspace/index.ts";

export const keys = family("users", {
  preferenceCounts: hash("stats:user_notification_settings:counts", mapOf(integer, { shape: "preference → users" }), {
    doc: "how many users want texts at which time of day: `unset`, `text-any`, `text-morning`, `text-afternoon`, `text-evening`",
  }),
  preferenceDay: hash(
    "stats:daily_user_notification_settings:{unix_date}",
    mapOf(integer, { shape: "old preference:new preference → changes" }),
    { doc: "how often people changed when they want texts on that day", params: { unix_date: /\d+/ } },
  ),
  preferenceEarliest: string("stats:daily_user_notification_settings:earliest", integer, {
    doc: "the earliest day whose changes may not be in SQL yet",
  }),
});
