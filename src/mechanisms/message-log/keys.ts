import { family, list } from "../../kernel/keyspace/index.ts";
import { noteGroup } from "./notes.ts";

export const messageLogKeys = family("messages", {
  buffer: list("messages:log", noteGroup, {
    doc: "steps of messages that wait to be stored in SQL, in on the right; lost without harm to any message",
    origin: "carillon",
    secret: true,
  }),
});
