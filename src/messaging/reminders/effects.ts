import { type Channel, installEffects } from "../contacts/service.ts";
import { installReminded, type TouchChannel } from "../touch/service.ts";
import { chosenBefore } from "./choices.ts";
import { type ReminderSql, reconcile, TEXTED } from "./registrations.ts";

const CHANNEL_OF: Readonly<Record<Channel, TouchChannel>> = { email: "email", phone: "sms", push: "push" };

/** Reminders follow contact methods: whoever becomes reachable gets them, whoever is no longer loses them. */
installEffects({
  reminders: {
    reachChanged: (tx, changes, { ctx, stats }) =>
      reconcile(
        tx as unknown as ReminderSql,
        ctx,
        changes.map(({ userId, channel, ifAdded, ifRemoved }) => ({
          userId,
          channel: CHANNEL_OF[channel],
          ifAdded,
          ifRemoved,
        })),
        stats,
      ),
  },
  reminderSettings: { olderThan: chosenBefore },
});

/** Campaigns by text reach those who get reminders by text. */
installReminded(TEXTED);
