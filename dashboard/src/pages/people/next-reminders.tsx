import { Text } from "@mantine/core";
import { type Answer, CALM, dateIn, useRead } from "../../api/index.ts";
import { ChannelMark, EmptyState, ErrorState, LoadingState, Panel, StateBadge, Time } from "../../parts/index.ts";
import styles from "./reminders.module.css";

type Coming = Answer<"get", "/api/1/admin/users/{sub}/daily_reminders/next">["items"][number];
const DAYS = 14;
const date = new Intl.DateTimeFormat(undefined, { weekday: "short", month: "short", day: "numeric", timeZone: "UTC" });

/** The next two weeks as somebody will live them: which day, which channel, between which hours. */
export function NextReminders({ sub }: { readonly sub: string }) {
  const read = useRead("/api/1/admin/users/{sub}/daily_reminders/next", { path: { sub } }, { every: CALM });
  const { data } = read;
  return (
    <Panel
      title="Next 14 days"
      description={data ? `If nothing changes; hours in ${data.timezone.replaceAll("_", " ")}` : "If nothing changes"}
    >
      {data ? (
        data.items.length === 0 ? (
          <EmptyState title="No reminders in the next 14 days">
            They have no day chosen, or no address that can be reached.
          </EmptyState>
        ) : (
          <ol className={styles.coming} aria-label="Reminders of the next 14 days">
            {Array.from({ length: DAYS }, (_, ahead) => dateIn(data.timezone, -ahead)).map((day) => (
              <Day key={day} day={day} items={data.items.filter((item) => item.date === day)} />
            ))}
          </ol>
        )
      ) : read.error ? (
        <ErrorState error={read.error} retry={() => void read.refetch()} />
      ) : (
        <LoadingState lines={6} />
      )}
    </Panel>
  );
}

function Day({ day, items }: { readonly day: string; readonly items: readonly Coming[] }) {
  return (
    <li className={styles.date} data-empty={items.length === 0}>
      <span className={styles.dateName}>{date.format(new Date(`${day}T00:00:00Z`))}</span>
      {items.length === 0 && "nothing"}
      {items.map(({ channel, earliest_local, latest_local, assigned_at, clocks_change }) => (
        <span key={channel} className={styles.item}>
          <ChannelMark channel={channel} />
          {assigned_at === null ? (
            <span>
              {earliest_local} – {latest_local}
            </span>
          ) : (
            <Text span size="sm">
              at <Time at={assigned_at} />
            </Text>
          )}
          {clocks_change && <StateBadge state="clocks_change" tone="warn" />}
        </span>
      ))}
    </li>
  );
}
