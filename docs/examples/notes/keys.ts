import { family, text, zset } from "../../../src/kernel/keyspace/index.ts";

export const keys = family("notes", {
  alarms: zset("notes:alarms", text, {
    doc: "notes by the time at which the expiry job looks at them; never later than the time in their row",
    score: "unix time to look at it",
    origin: "carillon",
  }),
});
