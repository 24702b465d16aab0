import { Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { type Answer, LIVE, useRead } from "../../api/index.ts";
import { EmptyState, ErrorState, LoadingState, numberText, Panel, StateBadge } from "../../parts/index.ts";
import styles from "./assignment-progress.module.css";

type Zones = Answer<"get", "/api/1/admin/daily_reminders/progress_info">["progress_by_date_and_timezone"][string];

const DAY = 86_400;
const FEW = 24;
const date = new Intl.DateTimeFormat(undefined, { weekday: "long", month: "long", day: "numeric", timeZone: "UTC" });

/** How far each open day is, zone by zone: up to which hour of their day people have a time. */
export function AssignmentProgress() {
  const read = useRead("/api/1/admin/daily_reminders/progress_info", undefined, { every: LIVE });
  const days = Object.entries(read.data?.progress_by_date_and_timezone ?? {});
  return (
    <Panel
      title="Times of the open days"
      description="A bar is the day of one timezone: everybody whose hours begin before its end has a time"
    >
      {read.data ? (
        days.length === 0 ? (
          <EmptyState title="No day is open">
            The job that finds times begins one at midnight of each timezone.
          </EmptyState>
        ) : (
          <Stack gap="xl">
            {days.map(([unixDate, zones]) => (
              <OpenDay key={unixDate} unixDate={Number(unixDate)} zones={zones} />
            ))}
          </Stack>
        )
      ) : read.error ? (
        <ErrorState error={read.error} retry={() => void read.refetch()} />
      ) : (
        <LoadingState lines={6} height={22} />
      )}
    </Panel>
  );
}

function OpenDay({ unixDate, zones }: { readonly unixDate: number; readonly zones: Zones }) {
  const [isWhole, setWhole] = useState(false);
  // What is under way first, then what has not begun, then what is done.
  const rank = ({ start_time, finished }: Zones[string]) => (finished ? 2 : start_time === null ? 1 : 0);
  const all = Object.entries(zones).sort(([one, a], [other, b]) => rank(a) - rank(b) || one.localeCompare(other));
  const finished = all.filter(([, zone]) => zone.finished).length;
  const shown = isWhole ? all : all.slice(0, FEW);
  return (
    <section aria-label={date.format(unixDate * DAY * 1000)}>
      <Group justify="space-between" mb={6}>
        <Text fw={600}>{date.format(unixDate * DAY * 1000)}</Text>
        <Text size="sm" c="dimmed">
          {numberText(finished)} of {numberText(all.length)} timezones done
        </Text>
      </Group>
      <ul className={styles.zones}>
        {shown.map(([name, zone]) => (
          <Zone key={name} name={name} zone={zone} />
        ))}
      </ul>
      {all.length > FEW && (
        <Button variant="default" size="xs" mt="sm" onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show fewer" : `Show all ${all.length}`}
        </Button>
      )}
    </section>
  );
}

function Zone({ name, zone }: { readonly name: string; readonly zone: Zones[string] }) {
  const { start_time, finished } = zone;
  const share = finished ? 100 : Math.min(99, (100 * Math.max(0, start_time ?? 0)) / DAY);
  const text = finished ? "done" : start_time === null ? "not begun" : `until ${clock(start_time)}`;
  const label = name.replaceAll("_", " ");
  return (
    <li className={styles.zone}>
      <span className={styles.name}>{label}</span>
      {finished ? (
        <StateBadge state="done" tone="good" />
      ) : (
        <Text span size="xs" c="dimmed">
          {text}
        </Text>
      )}
      <Progress
        className={styles.bar}
        value={share}
        color={finished ? "var(--series-good)" : "var(--series-push)"}
        size="sm"
        aria-label={`${label}: ${text}`}
      />
    </li>
  );
}

function clock(seconds: number): string {
  const minutes = Math.max(0, Math.floor(seconds / 60));
  return `${String(Math.floor(minutes / 60) % 24).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}
