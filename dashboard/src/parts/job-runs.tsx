import { Anchor, Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type Answer, LIVE, useRead } from "../api/index.ts";
import { DataTable } from "./data-table.tsx";
import { countedField, Duration, Time } from "./figures.tsx";
import { JsonView } from "./json-view.tsx";
import { Panel } from "./page-header.tsx";
import { StateBadge } from "./state-badge.tsx";
import { EmptyState } from "./states.tsx";

type Report = Answer<"get", "/api/1/admin/jobs/reports">["items"][number];

/** How the last run of each of these jobs went. */
export function JobRuns({ jobs, description }: { readonly jobs: readonly string[]; readonly description: string }) {
  const reports = useRead("/api/1/admin/jobs/reports", undefined, { every: LIVE });
  return (
    <Panel
      title="Last runs"
      description={description}
      actions={
        <Anchor
          component={Link}
          to="/jobs"
          search={{ tab: "recurring" } as never}
          size="sm"
          style={{ whiteSpace: "nowrap" }}
        >
          Schedule
        </Anchor>
      }
      h="100%"
    >
      <DataTable
        caption="Last run of each job"
        rows={reports.data?.items.filter(({ runner }) => jobs.includes(runner))}
        read={reports}
        keyOf={({ key }) => key}
        expect={jobs.length}
        empty={<EmptyState title="No job has run yet">Each reports here after its first run.</EmptyState>}
        columns={[
          {
            title: "Job",
            cell: ({ runner }) => (
              <Text span fz="inherit" style={{ whiteSpace: "nowrap" }}>
                {runner.replace(/^runners\.\w+\./, "").replaceAll("_", " ")}
              </Text>
            ),
          },
          {
            title: "State",
            cell: ({ state }) => <StateBadge state={state} label={state === "last_failed" ? "failed" : state} />,
          },
          {
            title: "Finished",
            align: "right",
            cell: ({ finished_at, running_time }) => (
              <Stack gap={2} align="flex-end">
                <Time at={finished_at} />
                {running_time !== null && (
                  <Group gap={4} fz="xs" c="dimmed" wrap="nowrap">
                    took <Duration seconds={running_time} />
                  </Group>
                )}
              </Stack>
            ),
          },
          { title: "Did", cell: (report) => (report.finished_at === null ? "–" : <Deeds report={report} />) },
        ]}
        detail={({ stop_reason, started_at, counts }) => <JsonView value={{ started_at, stop_reason, ...counts }} />}
      />
    </Panel>
  );
}

function Deeds({ report: { counts } }: { readonly report: Report }) {
  // Dates stand among the counts of some jobs; they are told in the details.
  const done = Object.entries(counts).filter(([name, count]) => Number(count) > 0 && !name.endsWith("_date"));
  const text = done.map(([name, count]) => countedField(name.replace(/^num_/, ""), Number(count))).join(", ");
  return (
    <Text size="sm" lineClamp={2}>
      {text || "nothing was to do"}
    </Text>
  );
}
