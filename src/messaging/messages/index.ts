import { domain } from "../../domain.ts";
import {
  messageLogKeys,
  messageLogMigrations,
  messageLogSettings,
  notesSettled,
} from "../../mechanisms/message-log/index.ts";
import { errors } from "./errors.ts";
import { recurring, runners } from "./jobs.ts";
import { routes } from "./routes.ts";

/** Messages of all channels: where each is now, and what happened to it. */
export const messages = domain({
  name: "messages",
  keys: [messageLogKeys],
  settings: messageLogSettings,
  errors,
  migrations: messageLogMigrations,
  runners,
  recurring,
  routes,
  // What was noted at the end should still be kept.
  start: async (ctx) => () => notesSettled(ctx),
});
