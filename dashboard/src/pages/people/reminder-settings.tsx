import { SimpleGrid, Stack, Text } from "@mantine/core";
import { type Answer, CALM, useRead } from "../../api/index.ts";
import { CHANNEL_NAMES, ChannelMark, ErrorState, LoadingState, Panel, StateBadge } from "../../parts/index.ts";
import styles from "./reminders.module.css";

type Held = Answer<"get", "/api/1/admin/users/{sub}/daily_reminders">;
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] as const;
const HOURS = 24 * 3_600;

/** When somebody wants to be reminded on each channel, and whether they are. */
export function ReminderSettings({ sub }: { readonly sub: string }) {
  const read = useRead("/api/1/admin/users/{sub}/daily_reminders", { path: { sub } }, { every: CALM });
  return (
    <Panel title="Notification settings" description="Days and hours where they are">
      {read.data ? (
        <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="lg">
          {CHANNEL_NAMES.map((channel) => (
            <Choice
              key={channel}
              channel={channel}
              setting={read.data.settings[channel]}
              reminder={read.data.reminders[channel]}
            />
          ))}
        </SimpleGrid>
      ) : read.error ? (
        <ErrorState error={read.error} retry={() => void read.refetch()} />
      ) : (
        <LoadingState lines={4} />
      )}
    </Panel>
  );
}

interface ChoiceProps {
  readonly channel: (typeof CHANNEL_NAMES)[number];
  readonly setting: Held["settings"]["sms"];
  readonly reminder: Held["reminders"]["sms"];
}

function Choice({ channel, setting, reminder }: ChoiceProps) {
  const { start, end, days, is_real } = setting;
  const from = `${(100 * Math.min(start, HOURS)) / HOURS}%`;
  const length = `${(100 * Math.max(0, Math.min(end, HOURS) - Math.min(start, HOURS))) / HOURS}%`;
  return (
    <Stack gap={8}>
      <div className={styles.head}>
        <ChannelMark channel={channel} />
        {reminder ? (
          <StateBadge state="reminded" tone="good" />
        ) : (
          <StateBadge state="none" label="no reminders" tone="neutral" />
        )}
      </div>
      <Text size="sm">
        {clock(start)} to {clock(end)}
        <Text span size="xs" c="dimmed">
          {is_real ? " – hours of their own" : " – a time of day"}
        </Text>
      </Text>
      <div className={styles.day} aria-hidden>
        <div className={styles.window} style={{ insetInlineStart: from, width: length }} />
      </div>
      <div className={styles.days}>
        {DAYS.map((day) => (
          <span key={day} className={styles.weekday} data-on={days.includes(day)} title={day}>
            {day.slice(0, 2)}
          </span>
        ))}
      </div>
      {reminder && (
        <Text size="xs" c="dimmed">
          {reminder.destinations.length === 0 ? "nowhere at the moment" : `to ${reminder.destinations.join(", ")}`}
        </Text>
      )}
    </Stack>
  );
}

function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const text = `${String(Math.floor(minutes / 60) % 24).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
  return seconds > HOURS ? `${text} of the next day` : text;
}
