import { Anchor, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { countOf, LIVE, useRead, useToday } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import {
  addressText,
  ChannelMark,
  DataTable,
  durationText,
  EmptyState,
  JobRuns,
  LiveIndicator,
  Num,
  PageHeader,
  Panel,
  PersonLink,
  StatTile,
  Time,
  useKeyPages,
} from "../../parts/index.ts";
import { LookUp } from "./look-up.tsx";

const JOBS = ["runners.touch.send", "runners.touch.log", "runners.touch.stale_detection"];

export function Page() {
  const { cursor, pager } = useKeyPages<number>();
  const live = { every: LIVE };
  const latest = useRead("/api/1/admin/touches", { query: { limit: 20, before: cursor } }, live);
  const queue = useRead("/api/1/admin/touch/send_queue_info", undefined, live);
  const pending = useRead("/api/1/admin/touch/pending_sorted_set_info", undefined, live);
  const { today, reads } = useToday(["touch_send"]);
  const now = useNow(1);
  const since = (at: number | null | undefined) =>
    at == null ? "none" : `oldest for ${durationText(Math.max(0, now - at))}`;
  const counted = reads.every(({ isSuccess }) => isSuccess);
  return (
    <>
      <PageHeader title="Touches" actions={<LiveIndicator of={[latest, queue, pending, ...reads]} />}>
        Each is one thing that one person was told on one channel. Open one to see its way, from the queue to the click.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile
            label="Waiting"
            value={queue.data && <Num value={queue.data.length} />}
            note={since(queue.data?.oldest_queued_at)}
          />
          <StatTile
            label="Under way"
            value={pending.data && <Num value={pending.data.length} />}
            note={since(pending.data?.oldest_score)}
          />
          <StatTile
            label="Reachable today"
            value={counted ? <Num value={countOf(today.touch_send, "reachable")} /> : undefined}
            note="handed to a channel"
          />
          <StatTile
            label="Unreachable today"
            value={counted ? <Num value={countOf(today.touch_send, "unreachable", "stale")} /> : undefined}
            note="no address, or too late"
            tone={countOf(today.touch_send, "unreachable", "stale") > 0 ? "warn" : "neutral"}
          />
        </SimpleGrid>
        <LookUp />
        <Panel title="Latest arrivals" description="The newest first; what failed is in the trail of its person">
          <DataTable
            caption="Touches that arrived, the newest first"
            rows={latest.data?.items}
            read={latest}
            expect={8}
            keyOf={({ uid, destination }) => `${uid} ${destination}`}
            empty={
              <EmptyState title="Nothing has arrived yet">
                Send something from a <Link to="/touch-points">touch point</Link>, and follow it here.
              </EmptyState>
            }
            columns={[
              {
                title: "Touch",
                cell: ({ uid, event_slug }) => (
                  <Anchor component={Link} to={`/touches/${uid}`} size="sm" fw={550}>
                    {event_slug ?? "a touch point that is gone"}
                  </Anchor>
                ),
              },
              { title: "Channel", cell: ({ channel }) => <ChannelMark channel={channel} /> },
              {
                title: "Person",
                cell: ({ user_sub: sub, ...named }) => <PersonLink person={{ sub, ...named }} />,
              },
              {
                title: "To",
                cell: ({ destination }) => (
                  <Text size="sm" lineClamp={1}>
                    {addressText(destination)}
                  </Text>
                ),
              },
              { title: "Arrived", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
            ]}
          />
          {pager(latest.data?.next)}
        </Panel>
        <JobRuns
          jobs={JOBS}
          description="Sending, writing down what happened, and finding what nobody told the end of"
        />
      </Stack>
    </>
  );
}
