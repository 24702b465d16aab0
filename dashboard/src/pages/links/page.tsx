import { Grid, SegmentedControl, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { countOf, LIVE, useRead, useToday } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import {
  ChartCard,
  durationText,
  EmptyState,
  JobRuns,
  LiveIndicator,
  Num,
  numberText,
  PageHeader,
  StatTile,
} from "../../parts/index.ts";
import { DIMENSIONS, type Dimension, useClicks } from "./clicks.ts";
import { LookUp } from "./look-up.tsx";

const JOBS = [
  "runners.touch.persist_link",
  "runners.touch.delayed_click_persist",
  "runners.touch.leaked_link_detection",
];

export function Page() {
  const live = { every: LIVE };
  const buffered = useRead("/api/1/admin/touch/buffered_link_sorted_set_info", undefined, live);
  const due = useRead("/api/1/admin/touch/persistable_buffered_link_sorted_set_info", undefined, live);
  const delayed = useRead("/api/1/admin/touch/delayed_link_clicks_sorted_set_info", undefined, live);
  const { today, reads } = useToday(["touch_links"]);
  const [dimension, setDimension] = useState<Dimension>("page");
  const { read, span, open, people, programs } = useClicks(dimension);
  const now = useNow(1);
  const counts = today.touch_links;
  const late = (due.data?.num_overdue ?? 0) > 0 && now - (due.data?.oldest_score ?? now) > 300;
  return (
    <>
      <PageHeader title="Links" actions={<LiveIndicator of={[buffered, due, delayed, ...reads]} />}>
        Links in messages: those that wait to be stored, and who followed them. Programs are kept apart from people.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile
            label="Clicks today"
            value={
              counts && <Num value={countOf(counts, "clicks_buffered", "clicks_direct_to_db", "clicks_delayed")} />
            }
            note="of people"
          />
          <StatTile
            label="Robots today"
            value={counts && <Num value={countOf(counts, "robots")} />}
            note="answered, not counted as clicks"
          />
          <StatTile label="Made today" value={counts && <Num value={countOf(counts, "created")} />} note="links" />
          <StatTile
            label="Not stored yet"
            value={buffered.data && <Num value={buffered.data.length} />}
            note={
              buffered.data?.oldest_score == null
                ? "none waits"
                : `oldest for ${durationText(Math.max(0, now - buffered.data.oldest_score))}`
            }
          />
          <StatTile
            label="To be stored"
            value={due.data && <Num value={due.data.length} />}
            note={
              due.data
                ? `${numberText(due.data.num_overdue)} due, ${numberText(due.data.num_in_purgatory)} in work`
                : ""
            }
            tone={late ? "warn" : "neutral"}
          />
          <StatTile
            label="Delayed clicks"
            value={delayed.data && <Num value={delayed.data.length} />}
            note={delayed.data && delayed.data.length > 0 ? "wait for their link" : "none waits"}
          />
        </SimpleGrid>
        <LookUp />
        <SegmentedControl
          aria-label="How clicks are told apart"
          value={dimension}
          onChange={(value) => setDimension(value as Dimension)}
          data={DIMENSIONS.map(({ value, label }) => ({ value, label }))}
          w="fit-content"
        />
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <ChartCard
              title={`Clicks over ${span}`}
              description="Of people, on the day they clicked"
              rows={people?.rows}
              open={open}
              series={people?.series ?? []}
              folded={people?.folded}
              read={read}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <ChartCard
              title={`Robots over ${span}`}
              description="Previews, scanners and crawlers, by the rule that knew them"
              rows={programs?.rows}
              open={open}
              series={programs?.series ?? []}
              folded={programs?.folded}
              read={read}
              empty={
                <EmptyState title="No program has looked">
                  Chats and mailboxes fetch links to preview or check them.
                </EmptyState>
              }
            />
          </Grid.Col>
          <Grid.Col span={12}>
            <JobRuns jobs={JOBS} description="Storing links and clicks, and clearing away what nobody claimed" />
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}
