import { Anchor, Group, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { Answer, Read } from "../../api/index.ts";
import {
  DataTable,
  durationText,
  EmptyState,
  ErrorState,
  LoadingState,
  Num,
  Panel,
  StateBadge,
  Time,
} from "../../parts/index.ts";

const SHOWN = 6;

export function RecentAlerts({ read }: { readonly read: Read<Answer<"get", "/api/1/admin/alerts">> }) {
  // Notes of the house about itself are on the page of alerts; here stands what somebody should look at.
  const items = read.data?.items.filter(({ level }) => level !== "ops").slice(0, SHOWN);
  return (
    <Panel
      title="Latest alerts"
      h="100%"
      actions={
        <Anchor component={Link} to="/alerts" size="sm">
          All alerts
        </Anchor>
      }
    >
      {!items && read.error && <ErrorState error={read.error} retry={() => void read.refetch()} />}
      {!items && !read.error && <LoadingState lines={4} />}
      {items?.length === 0 && (
        <EmptyState title="No alerts" icon={<IconCircleCheck size={22} />}>
          Nothing has gone wrong so far.
        </EmptyState>
      )}
      <Stack gap="sm">
        {items?.map((alert) => (
          <div key={`${alert.occurred_at} ${alert.identifier} ${alert.text}`}>
            <Group gap="xs" justify="space-between" wrap="nowrap">
              <StateBadge state={alert.level} />
              <Text size="sm" c="dimmed" component="span">
                <Time at={alert.occurred_at} />
              </Text>
            </Group>
            <Text size="sm" mt={4} lineClamp={2}>
              {alert.text}
            </Text>
          </div>
        ))}
      </Stack>
    </Panel>
  );
}

export function WorkersPanel({ read }: { readonly read: Read<Answer<"get", "/api/1/admin/jobs/workers">> }) {
  return (
    <Panel title="Workers" h="100%">
      <DataTable
        caption="Workers and what they run"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        expect={2}
        empty={
          <EmptyState title="No worker runs">
            Start one with `carillon work`, or everything with `npm start`.
          </EmptyState>
        }
        columns={[
          { title: "Host", cell: ({ host }) => host },
          { title: "Running", align: "right", cell: ({ running }) => <Num value={running.length} /> },
          { title: "Slots", align: "right", cell: ({ concurrency }) => <Num value={concurrency} /> },
          {
            title: "Heartbeat",
            align: "right",
            cell: ({ heartbeat_age }) => `${durationText(Math.round(heartbeat_age))} ago`,
          },
        ]}
      />
    </Panel>
  );
}
