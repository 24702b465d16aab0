import { SimpleGrid, Stack, Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { LIVE, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import { durationText, LiveIndicator, Num, PageHeader, StatTile } from "../../parts/index.ts";
import { DelayedJobs } from "./delayed-jobs.tsx";
import { FailedJobs } from "./failed-jobs.tsx";
import { HeldLocks } from "./held-locks.tsx";
import { RecurringJobs } from "./recurring-jobs.tsx";
import { RunJobButton } from "./run-job.tsx";
import { RunningJobs } from "./running-jobs.tsx";

const TABS = [
  { name: "running", label: "Running", Content: RunningJobs },
  { name: "recurring", label: "Schedule", Content: RecurringJobs },
  { name: "failed", label: "Failed", Content: FailedJobs },
  { name: "delayed", label: "Delayed", Content: DelayedJobs },
  { name: "locks", label: "Locks", Content: HeldLocks },
] as const;

const QUEUE_NAMES: Readonly<Record<string, string>> = {
  "jobs:hot": "Waiting",
  "jobs:hot:1": "Waiting, costly",
  "jobs:hot:2": "Waiting, cheap",
};

export function Page() {
  const queues = useRead("/api/1/admin/jobs/queues", undefined, { every: LIVE });
  const { tab = "running" } = useSearch({ strict: false }) as { readonly tab?: string };
  const navigate = useNavigate();
  const now = useNow(1);
  const { data } = queues;
  const workers = Math.max(0, ...Object.values(data?.workers_by_category ?? {}));
  const known = TABS.some(({ name }) => name === tab) ? tab : "running";
  return (
    <>
      <PageHeader
        title="Jobs"
        actions={
          <>
            <LiveIndicator of={[queues]} />
            <RunJobButton />
          </>
        }
      >
        What runs, what waits, what failed, and what comes next.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing={{ base: "xs", sm: "md" }}>
          {Object.entries(QUEUE_NAMES).map(([key, label]) => {
            const queue = data?.queues.find((each) => each.key === key);
            const oldest = queue?.oldest_queued_at ?? null;
            return (
              <StatTile
                key={key}
                label={label}
                value={queue ? <Num value={queue.length} /> : undefined}
                note={oldest === null ? "none" : `oldest for ${durationText(Math.max(0, now - oldest))}`}
              />
            );
          })}
          <StatTile label="Delayed" value={data ? <Num value={data.delayed} /> : undefined} note="for later" />
          <StatTile
            label="Failed"
            value={data ? <Num value={data.failed} /> : undefined}
            note={data?.failed ? "to decide on" : "none"}
            tone={data?.failed ? "bad" : "neutral"}
          />
          <StatTile
            label="Workers"
            value={data ? <Num value={workers} /> : undefined}
            note={workers === 0 ? "nobody runs jobs" : "registered"}
            tone={data && workers === 0 ? "bad" : "neutral"}
          />
        </SimpleGrid>
        <Tabs
          value={known}
          keepMounted={false}
          onChange={(value) =>
            void navigate({ to: "/jobs", search: { tab: value ?? "running" } as never, replace: true })
          }
        >
          <Tabs.List mb="md">
            {TABS.map(({ name, label }) => (
              <Tabs.Tab key={name} value={name} px={{ base: 9, xs: "md" }}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {TABS.map(({ name, Content }) => (
            <Tabs.Panel key={name} value={name}>
              <Content />
            </Tabs.Panel>
          ))}
        </Tabs>
      </Stack>
    </>
  );
}
