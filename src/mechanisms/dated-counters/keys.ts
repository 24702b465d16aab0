import { expires, family, literal, string } from "../../kernel/keyspace/index.ts";

/** How long a flag outlives the step it guards. */
export const FLAG_SECONDS = 604_800;

/** Flags that make a step of a rotation or of a staged count happen once. Every family's scripts write them. */
export const datedCounterKeys = family("stats", {
  rotated: string("stats:rotated:{uid}", literal("1"), {
    doc: "the snapshot of this rotation was subtracted from Redis; a repeat of that step does nothing",
    ttl: expires(FLAG_SECONDS),
    origin: "carillon",
    shared: true,
  }),
  applied: string("stats:applied:{uid}", literal("1"), {
    doc: "the counts that this SQL transaction staged were applied; a repeat does nothing",
    ttl: expires(FLAG_SECONDS),
    origin: "carillon",
    shared: true,
  }),
});
