import { Group, Loader, Progress, Stack, Text, Timeline } from "@mantine/core";
import { useEffect } from "react";
import { useRead, useRefresh } from "../api/index.ts";
import { Time } from "./figures.tsx";
import { StateBadge } from "./state-badge.tsx";
import { ErrorState } from "./states.tsx";

interface JobProgressProps {
  readonly uid: string;
  readonly brief?: boolean;
  /** Reads whose path begins with one of these are asked again when the job has ended. */
  readonly refreshes?: readonly string[];
}

const NONE: readonly string[] = [];

/** What a job tells while it runs, as it tells it. */
export function JobProgress({ uid, brief = false, refreshes = NONE }: JobProgressProps) {
  const read = useRead("/api/1/admin/jobs/progress/{job_uid}", { path: { job_uid: uid } }, { every: 1 });
  const refresh = useRefresh();
  const isDone = read.data?.done ?? false;
  useEffect(() => {
    if (isDone) void refresh(refreshes);
  }, [isDone, refresh, refreshes]);
  const events = read.data?.events ?? [];
  const last = events.at(-1);
  if (read.error && !read.data) return brief ? <Text size="sm">not told</Text> : <ErrorState error={read.error} />;
  if (!last) return <Loader size="xs" role="status" aria-label="Waiting for the job" />;
  const bar = last.indicator?.type === "bar" ? last.indicator : undefined;
  if (brief) return bar ? <Bar at={bar.at} of={bar.of} label={last.message} /> : <StateBadge state={last.type} />;
  return (
    <Stack gap="sm" role="status">
      <Group gap="sm">
        <StateBadge state={last.type === "started" || last.type === "progress" ? "running" : last.type} />
        <Text size="sm">{last.message}</Text>
        {!isDone && <Loader size="xs" aria-hidden />}
      </Group>
      {bar && <Bar at={bar.at} of={bar.of} label={last.message} />}
      <Timeline bulletSize={14} lineWidth={2} active={events.length}>
        {events.map((event) => (
          <Timeline.Item key={event.seq} title={<Text size="sm">{event.message}</Text>}>
            <Text size="xs" c="dimmed" component="div">
              {event.type}, <Time at={event.occurred_at} />
            </Text>
          </Timeline.Item>
        ))}
      </Timeline>
    </Stack>
  );
}

function Bar({ at, of, label }: { readonly at: number; readonly of: number; readonly label: string }) {
  return (
    <Progress value={of === 0 ? 100 : (100 * at) / of} size="lg" miw={120} aria-label={`${label}: ${at} of ${of}`} />
  );
}
