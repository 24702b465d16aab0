import { Grid } from "@mantine/core";
import { CALM, dateIn, rowsOf, useDays, useRead, useStatisticsTimezone } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { CHANNEL_LABELS, CHANNEL_NAMES, ChartCard } from "../../parts/index.ts";

const DAYS = 90;

/** Ninety days of reminders: by channel, what was left out, and who came and went. */
export function ReminderCharts() {
  const timezone = useStatisticsTimezone();
  const query = { from: dateIn(timezone, DAYS - 1), to: dateIn(timezone) };
  const sent = useRead(
    "/api/1/admin/stats/{family}/range",
    { path: { family: "daily_reminders" }, query },
    { every: CALM },
  );
  const parts = (sent.data?.sent_breakdown ?? {}) as Readonly<Record<string, readonly number[]>>;
  const days = useDays(["daily_reminders", "daily_reminder_registrations"], DAYS);
  const known = CHANNEL_NAMES.filter((channel) => parts[channel] !== undefined);
  const total = (sent.data?.sent ?? []) as readonly number[];
  // Days from before there were channels to tell apart still count.
  const rest = total.map((all, day) => all - known.reduce((sum, channel) => sum + (parts[channel]?.[day] ?? 0), 0));
  const hasRest = rest.some((count) => count > 0);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <ChartCard
          title={`Reminders sent over ${days.span}`}
          description="By channel, on the local day that each is for"
          read={sent}
          rows={rowsOf(sent.data?.labels, {
            ...Object.fromEntries(CHANNEL_NAMES.map((channel) => [channel, parts[channel] ?? []])),
            ...(hasRest ? { rest } : {}),
          })?.slice(-(days.labels?.length ?? DAYS))}
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
