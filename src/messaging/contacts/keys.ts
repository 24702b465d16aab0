import { expires, family, integer, string } from "../../kernel/keyspace/index.ts";

export const REGISTRATION_WINDOW = 60;

export const keys = family("contacts", {
  settingsImprovedAt: string("daily_reminder_settings_improved_at", integer, {
    doc: "unix seconds when the choices about reminders last became better; whoever chose before is asked again",
  }),
  tokenRegistrations: string("contacts:token_registrations:{user_sub}", integer, {
    doc: "how many push tokens one user registered in the running minute",
    ttl: expires(REGISTRATION_WINDOW),
    origin: "carillon",
    params: { user_sub: /[A-Za-z0-9._|@+-]{1,128}/ },
  }),
});
