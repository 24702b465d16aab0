import { Code, Stack, Text } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import {
  DataTable,
  Duration,
  durationText,
  EmptyState,
  JobProgress,
  JsonView,
  Num,
  Panel,
  StateBadge,
  Time,
} from "../../parts/index.ts";

export function RunningJobs() {
  const running = useRead("/api/1/admin/jobs/running", undefined, { every: 1 });
  const workers = useRead("/api/1/admin/jobs/workers", undefined, { every: LIVE });
  const now = useNow(1);
  return (
    <Stack gap="md">
      <Panel title="Running now" description="Most jobs take milliseconds and are seen here only by chance">
        <DataTable
          caption="Jobs that workers hold now"
          rows={running.data?.items}
          read={running}
          keyOf={(job) => `${job.worker_uid} ${job.name} ${job.queued_at} ${job.job_uid ?? ""}`}
          empty={
            <EmptyState title="Nothing runs at this moment">Jobs appear here while a worker holds them.</EmptyState>
          }
          expect={3}
          columns={[
            { title: "Job", cell: ({ name }) => <JobName name={name} /> },
            {
              title: "State",
              cell: ({ since }) => (
                <StateBadge
                  state={since === null ? "queued" : "running"}
                  label={since === null ? "taken" : "running"}
                />
              ),
            },
            {
              title: "For",
              align: "right",
              cell: ({ since }) => <Duration seconds={since === null ? null : Math.max(0, Math.round(now - since))} />,
            },
            { title: "Host", cell: ({ host }) => host },
            {
              title: "Progress",
              cell: ({ job_uid }) => (job_uid === null ? "–" : <JobProgress uid={job_uid} brief />),
            },
          ]}
          detail={(job) => (
            <Stack gap="sm">
              {job.job_uid !== null && <JobProgress uid={job.job_uid} />}
              <JsonView value={job} />
            </Stack>
          )}
        />
      </Panel>
      <Panel title="Workers">
        <DataTable
          caption="Workers with their heartbeat"
          rows={workers.data?.items}
          read={workers}
          keyOf={({ uid }) => uid}
          expect={2}
          empty={
            <EmptyState title="No worker runs">
              Start one with `carillon work`, or everything with `npm start`.
            </EmptyState>
          }
          columns={[
            { title: "Host", cell: ({ host, pid }) => `${host} (process ${pid})` },
            { title: "Version", cell: ({ version }) => version },
            { title: "Takes", cell: ({ categories }) => categoriesText(categories) },
            { title: "Running", align: "right", cell: ({ running: jobs }) => <Num value={jobs.length} /> },
            { title: "Slots", align: "right", cell: ({ concurrency }) => <Num value={concurrency} /> },
            {
              title: "Heartbeat",
              align: "right",
              cell: ({ heartbeat_age }) => `${durationText(Math.round(heartbeat_age))} ago`,
            },
            { title: "Started", align: "right", cell: ({ started_at }) => <Time at={started_at} /> },
          ]}
        />
      </Panel>
    </Stack>
  );
}

const CATEGORIES: Readonly<Record<string, string>> = { "1": "costly", "2": "cheap" };
const categoriesText = (categories: string) =>
  `${categories
    .split(",")
    .map((each) => CATEGORIES[each.trim()] ?? each)
    .join(" and ")} jobs`;

/** `runners.` is the same for all of them. */
export function JobName({
  name,
  doc,
  of = "",
}: {
  readonly name: string;
  readonly doc?: string;
  readonly of?: string;
}) {
  return (
    <>
      <Code fz="sm">{name.replace(/^runners\./, "") || "(not a job)"}</Code>
      {of !== "" && ` ${of}`}
      {doc && (
        <Text size="xs" c="dimmed" component="span" display="block" mt={3}>
          {doc}
        </Text>
      )}
    </>
  );
}
