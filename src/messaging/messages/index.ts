import { domain } from "../../domain.ts";
import {
  messageLogKeys,
  messageLogMigrations,
  messageLogSettings,
  notesSettled,
} from "../../mechanisms/message-log/index.ts";
import { recurring, runners } from "./jobs.ts";

/** Messages of all channels: where each is now, and what happened to it. */
export const messages = domain({
  name: "messages",
  keys: [messageLogKeys],
  settings: messageLogSettings,
  migrations: messageLogMigrations,
  runners,
  recurring,
  // What was noted at the end should still be kept.
  start: async (ctx) => () => notesSettled(ctx),
});
