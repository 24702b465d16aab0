import { Anchor, Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type Answer, LIVE, useRead } from "../../api/index.ts";
import { DataTable, Duration, EmptyState, JsonView, numberText, Panel, StateBadge, Time } from "../../parts/index.ts";
import { JobName } from "../jobs/running-jobs.tsx";
import type { ChannelPlan } from "./plan.ts";

type Report = Answer<"get", "/api/1/admin/jobs/reports">["items"][number];

/** What the jobs of a channel did when they last ran. */
export function LastRuns({ plan }: { readonly plan: ChannelPlan }) {
  const reports = useRead("/api/1/admin/jobs/reports", undefined, { every: LIVE });
  const runners = useRead("/api/1/admin/jobs/runners");
  const docs = new Map(runners.data?.items.map(({ name, doc }) => [name, doc]));
  return (
    <Panel
      title="Last run of each job"
      description={`The jobs that move ${plan.messages} along`}
      actions={
        <Anchor component={Link} to="/jobs" search={{ tab: "recurring" } as never} size="sm">
          Schedule
        </Anchor>
      }
    >
      <DataTable
        caption={`Last runs of the jobs of ${plan.messages}`}
        rows={reports.data?.items.filter(({ runner }) => runner.startsWith(plan.runners))}
        read={reports}
        keyOf={({ key }) => key}
        empty={<EmptyState title="No job has run yet">Each reports here after its first run.</EmptyState>}
        columns={[
          { title: "Job", cell: ({ runner }) => <JobName name={runner} doc={docs.get(runner)} /> },
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
                  <Group gap={4} fz="xs" c="dimmed">
                    took <Duration seconds={running_time} />
                  </Group>
                )}
              </Stack>
            ),
          },
          { title: "What it did", cell: (report) => <Deeds report={report} /> },
        ]}
        detail={({ stop_reason, started_at, counts }) => <JsonView value={{ started_at, stop_reason, ...counts }} />}
      />
    </Panel>
  );
}

function Deeds({ report: { counts, stop_reason } }: { readonly report: Report }) {
  const told = Object.entries(counts).filter(([, count]) => Number(count) > 0);
  const text =
    told.length === 0
      ? "nothing was to do"
      : told
          .map(([name, count]) => `${numberText(Number(count))} ${name.replace(/^num_/, "").replaceAll("_", " ")}`)
          .join(", ");
  return (
    <Text size="sm" lineClamp={2} title={stop_reason === null ? undefined : `Stopped: ${stop_reason}`}>
      {text}
    </Text>
  );
}
