import { family, string, text } from "../../kernel/keyspace/index.ts";

export const keys = family("statistics", {
  timezone: string("stats:timezone", text, {
    doc: "the timezone in which the days of all statistics are counted; a start with another one is refused",
    origin: "carillon",
  }),
});
