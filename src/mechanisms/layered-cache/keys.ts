import { channel, family, text } from "../../kernel/keyspace/index.ts";

export const keys = family("layered_cache", {
  caughtUp: channel("layered_cache:caught_up:{process}", text, {
    doc: "a process writes to itself here: when it reads its own message, it has handled every frame sent before",
    origin: "carillon",
  }),
});
