import { z } from "zod";
import { settings } from "../../kernel/config.ts";

/** What all counters of the house agree on. */
export const statisticsSettings = {
  timezone: {
    ...settings.text("stats.timezone", {
      env: "CARILLON_STATISTICS_TZ",
      default: "America/Los_Angeles",
      doc: "the IANA timezone in which the days of statistics begin and end and in which nightly jobs run. Once it was used, a start with another one is refused unless CARILLON_STATS_REBASE says that it is meant",
    }),
    schema: z.string().refine(isTimezone, "is not a timezone of the IANA database, such as Europe/Berlin"),
  },
};

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    // Offsets such as +02:00 are accepted above, but have no clock changes and no name.
    return /^[A-Za-z]/.test(name);
  } catch {
    return false;
  }
}
