import { Text } from "@mantine/core";
import { useRead } from "../../api/index.ts";
import {
  ChannelMark,
  DataTable,
  EmptyState,
  JsonView,
  Panel,
  StateBadge,
  Time,
  useKeyPages,
} from "../../parts/index.ts";

const ACTIONS: Readonly<Record<string, string>> = {
  create_verified: "added, verified",
  create_unverified: "added, not verified",
  delete: "removed",
  verify: "verified",
  enable_notifs: "switched on",
  disable_notifs: "switched off",
};
const WEEK = ["Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"];

interface OfPerson {
  readonly sub: string;
}

export function ContactLog({ sub }: OfPerson) {
  const { cursor, pager } = useKeyPages<string>();
  const read = useRead("/api/1/admin/users/{sub}/contact_method_log", {
    path: { sub },
    query: { limit: 25, after: cursor },
  });
  return (
    <Panel title="Changes of addresses" description="What happened to each, and why">
      <DataTable
        caption="Changes of addresses, the newest first"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        empty={<EmptyState title="No address has ever changed" />}
        columns={[
          { title: "Address", cell: ({ identifier }) => identifier },
          { title: "Kind", cell: ({ channel }) => <ChannelMark channel={channel} /> },
          { title: "What", cell: ({ action }) => ACTIONS[action] ?? action },
          { title: "Because of", cell: ({ reason }) => String(reason.source ?? "–").replaceAll("_", " ") },
          { title: "When", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
        detail={({ reason }) => <JsonView value={reason} />}
      />
      {pager(read.data?.next)}
    </Panel>
  );
}

export function SettingsLog({ sub }: OfPerson) {
  const { cursor, pager } = useKeyPages<number>();
  const read = useRead("/api/1/admin/users/{sub}/daily_reminder_settings_log", {
    path: { sub },
    query: { limit: 25, before: cursor },
  });
  return (
    <Panel title="Changes of reminder times" description="Every choice that they made">
      <DataTable
        caption="Changes of reminder times, the newest first"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        empty={
          <EmptyState title="They have not chosen yet">They get reminders in the morning, as everybody.</EmptyState>
        }
        columns={[
          { title: "Channel", cell: ({ channel }) => <ChannelMark channel={channel} /> },
          { title: "Days", cell: ({ day_of_week_mask }) => daysOf(day_of_week_mask) },
          { title: "Hours", cell: ({ time_range }) => rangeOf(time_range) },
          { title: "When", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
        detail={({ reason }) => <JsonView value={reason} />}
      />
      {pager(read.data?.next)}
    </Panel>
  );
}

export function TimezoneLog({ sub }: OfPerson) {
  const { cursor, pager } = useKeyPages<number>();
  const read = useRead("/api/1/admin/users/{sub}/timezone_log", {
    path: { sub },
    query: { limit: 25, before: cursor },
  });
  return (
    <Panel title="Changes of timezone" description="Where they were, as far as anybody said">
      <DataTable
        caption="Changes of timezone, the newest first"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        empty={<EmptyState title="They have always been in the same place" />}
        columns={[
          { title: "Timezone", cell: ({ timezone }) => timezone?.replaceAll("_", " ") ?? "none" },
          {
            title: "Said by",
            cell: ({ source, style }) => (
              <Text span size="sm">
                {[source, style].filter((part) => part !== null).join(", ")}
              </Text>
            ),
          },
          {
            title: "Sure",
            cell: ({ guessed }) => (
              <StateBadge state={guessed ? "guessed" : "known"} tone={guessed ? "warn" : "good"} />
            ),
          },
          { title: "When", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
      />
      {pager(read.data?.next)}
    </Panel>
  );
}

/** Bit 0 is Sunday. */
function daysOf(mask: number): string {
  if (mask === 0) return "none";
  if (mask === 127) return "every day";
  return WEEK.filter((_, bit) => (mask & (1 << bit)) !== 0).join(" ");
}

type Range = { readonly type: string; readonly preset?: string; readonly start?: number; readonly end?: number };

function rangeOf(range: Range): string {
  const clock = (seconds = 0) =>
    `${String(Math.floor(seconds / 3600) % 24).padStart(2, "0")}:${String(Math.floor(seconds / 60) % 60).padStart(2, "0")}`;
  return range.type === "preset" ? `${range.preset}` : `${clock(range.start)} to ${clock(range.end)}`;
}
