import { Grid, SimpleGrid, Stack } from "@mantine/core";
import { IconSparkles } from "@tabler/icons-react";
import { CALM, countOf, LIVE, useChange, useRead, useToday } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import {
  CHANNEL_LABELS,
  CHANNEL_NAMES,
  ConfirmButton,
  durationText,
  JobRuns,
  LiveIndicator,
  Num,
  PageHeader,
  StatTile,
} from "../../parts/index.ts";
import { AssignmentProgress } from "./assignment-progress.tsx";
import { ReminderCharts } from "./reminder-charts.tsx";
import { WishesPanel } from "./wishes-panel.tsx";

const JOBS = ["runners.daily_reminders.assign_time", "runners.daily_reminders.send"];

export function Page() {
  const counts = useRead("/api/1/admin/daily_reminders/counts", undefined, { every: CALM });
  const queued = useRead("/api/1/admin/daily_reminders/queued_info", undefined, { every: LIVE });
  const { today, reads } = useToday(["daily_reminders"]);
  const now = useNow(1);
  const improve = useChange("post", "/api/1/admin/daily_reminders/settings_improved", {
    done: "Everybody is asked for their times again",
  });
  const next = queued.data?.oldest ?? null;
  return (
    <>
      <PageHeader
        title="Reminders"
        actions={
          <>
            <LiveIndicator of={[counts, queued, ...reads]} />
            <ConfirmButton
              question="Apps ask everybody who chose their times before now to choose again. Do it when the choices became better."
              confirm="Ask everybody"
              leftSection={<IconSparkles size={14} aria-hidden />}
              loading={improve.isPending}
              onConfirm={() => improve.mutate({})}
            >
              Ask for times again
            </ConfirmButton>
          </>
        }
      >
        Who is reminded every day, and how far today's times are found, timezone by timezone.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing={{ base: "xs", sm: "md" }}>
          {CHANNEL_NAMES.map((channel) => (
            <StatTile
              key={channel}
              label={`By ${CHANNEL_LABELS[channel] === "SMS" ? "SMS" : CHANNEL_LABELS[channel].toLowerCase()}`}
              value={counts.data && <Num value={counts.data[channel]} />}
              note="people get reminders"
            />
          ))}
          <StatTile
            label="Have a time"
            value={queued.data && <Num value={queued.data.length} />}
            note={
              next === null
                ? "none waits"
                : next > now
                  ? `next in ${durationText(next - now)}`
                  : `due for ${durationText(now - next)}`
            }
            tone={next !== null && now - next > 120 ? "warn" : "neutral"}
          />
          <StatTile
            label="Sent today"
            value={today.daily_reminders && <Num value={countOf(today.daily_reminders, "sent")} />}
            note={`of ${countOf(today.daily_reminders, "time_assigned")} planned`}
          />
          <StatTile
            label="Left out today"
            value={
              today.daily_reminders && (
                <Num
                  value={countOf(today.daily_reminders, "skipped_assigning_time", "skipped_sending", "sends_lost")}
                />
              )
            }
            note="too late, or nobody there"
            tone={
              countOf(today.daily_reminders, "skipped_assigning_time", "skipped_sending", "sends_lost") > 0
                ? "warn"
                : "neutral"
            }
          />
        </SimpleGrid>
        <AssignmentProgress />
        <ReminderCharts />
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <JobRuns jobs={JOBS} description="Finding a time for everybody, and sending what is due" />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <WishesPanel />
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}
