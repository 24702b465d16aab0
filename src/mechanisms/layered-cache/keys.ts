import { channel, family, text } from "../../kernel/keyspace/index.ts";

export const keys = family("layered_cache", {
  caughtUp: channel("layered_cache:caught_up:{token}", text, {
    doc: "never published to: subscribing to it answers once every frame sent before has been received",
    origin: "carillon",
  }),
});
