import { Grid } from "@mantine/core";
import { rowsOf, useDays } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { CHANNEL_LABELS, CHANNEL_NAMES, ChartCard } from "../../parts/index.ts";

/** Ninety days of reminders: by channel, what was left out, and who came and went. */
export function ReminderCharts() {
  const days = useDays(["daily_reminders", "daily_reminder_registrations"]);
  const parts = days.breakdown("daily_reminders", "sent");
  const known = CHANNEL_NAMES.filter((channel) => parts[channel] !== undefined);
  // Days from before there were channels to tell apart still count.
  const rest = days
    .series("daily_reminders", "sent")
    .map((all, day) => all - known.reduce((sum, channel) => sum + (parts[channel]?.[day] ?? 0), 0));
  const hasRest = rest.some((count) => count > 0);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <ChartCard
          title={`Reminders sent over ${days.span}`}
          description="By channel, on the local day that each is for"
          read={days.read}
          open={days.open("daily_reminders")}
          rows={rowsOf(days.labels, {
            ...Object.fromEntries(CHANNEL_NAMES.map((channel) => [channel, parts[channel] ?? []])),
            ...(hasRest ? { rest } : {}),
          })}
          series={[
            ...CHANNEL_NAMES.map((name) => ({ name, label: CHANNEL_LABELS[name], color: SERIES[name] })),
            ...(hasRest ? [{ name: "rest", label: "Not told apart", color: SERIES.other }] : []),
          ]}
        />
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <ChartCard
          title={`Who came and went over ${days.span}`}
          description="People who began or stopped to get reminders on a channel"
          type="lines"
          read={days.read}
          open={days.open("daily_reminder_registrations")}
          rows={rowsOf(days.labels, {
            subscribed: days.series("daily_reminder_registrations", "subscribed"),
            unsubscribed: days.series("daily_reminder_registrations", "unsubscribed"),
          })}
          series={[
            { name: "subscribed", label: "Began", color: SERIES.good },
            { name: "unsubscribed", label: "Stopped", color: SERIES.bad },
          ]}
        />
      </Grid.Col>
      <Grid.Col span={12}>
        <ChartCard
          title={`Planned, sent and left out over ${days.span}`}
          description="Every reminder that got a time, and those that were too late or had nobody"
          type="lines"
          height={200}
          read={days.read}
          open={days.open("daily_reminders")}
          rows={rowsOf(days.labels, {
            planned: days.series("daily_reminders", "time_assigned"),
            sent: days.series("daily_reminders", "sent"),
            out: days.series("daily_reminders", "skipped_assigning_time", "skipped_sending", "sends_lost"),
          })}
          series={[
            { name: "planned", label: "Planned", color: SERIES.push },
            { name: "sent", label: "Sent", color: SERIES.good },
            { name: "out", label: "Left out", color: SERIES.bad },
          ]}
        />
      </Grid.Col>
    </Grid>
  );
}
