import { family, integer, string } from "../../kernel/keyspace/index.ts";

export const keys = family("contacts", {
  settingsImprovedAt: string("daily_reminder_settings_improved_at", integer, {
    doc: "unix seconds when the choices about reminders last became better; whoever chose before is asked again",
  }),
});
