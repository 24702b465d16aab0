import { Anchor, Group, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { type Answer, useRead } from "../../api/index.ts";
import { EmptyState, ErrorState, LoadingState, Panel, StateBadge, Time } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

type Alert = Answer<"get", "/api/1/admin/alerts">["items"][number];

const SHOWN = 5;

/** What rang because of this channel, the newest first. */
export function ChannelAlerts({ plan }: { readonly plan: ChannelPlan }) {
  const read = useRead("/api/1/admin/alerts", undefined, { every: 5 });
  const items = read.data?.items.filter((alert) => isAbout(plan, alert)).slice(0, SHOWN);
  return (
    <Panel
      title="Alerts"
      description={`The latest that have to do with ${plan.messages}`}
      actions={
        <Anchor component={Link} to="/alerts" size="sm" style={{ whiteSpace: "nowrap" }}>
          All alerts
        </Anchor>
      }
    >
      {!items && (read.error ? <ErrorState error={read.error} retry={() => void read.refetch()} /> : <LoadingState />)}
      {items?.length === 0 && (
        <EmptyState title="No alerts" icon={<IconCircleCheck size={22} />}>
          Nothing has gone wrong here so far.
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

function isAbout(plan: ChannelPlan, { identifier, text }: Alert): boolean {
  if (identifier.startsWith("providers:"))
    return text.includes(` for ${plan.name}`) || text.startsWith(`${plan.name} `);
  return [...plan.alerts, `quarantine:${plan.keys}`].some((start) => identifier.startsWith(start));
}
