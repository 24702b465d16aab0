import { Button, Stack, Text, TextInput } from "@mantine/core";
import { IconPlayerPlay, IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { type Answer, useChange, useRead } from "../../api/index.ts";
import { DataTable, Duration, EmptyState, JsonView, Panel, StateBadge, Time } from "../../parts/index.ts";
import { JobName } from "./running-jobs.tsx";
import { scheduleText, zoneText } from "./schedule-text.ts";

type Report = Answer<"get", "/api/1/admin/jobs/reports">["items"][number];

export function RecurringJobs() {
  const schedule = useRead("/api/1/admin/jobs/recurring", undefined, { every: 5 });
  const reports = useRead("/api/1/admin/jobs/reports", undefined, { every: 5 });
  const run = useChange("post", "/api/1/admin/jobs/recurring/{digest}/run", {
    done: ({ queued }) => (queued ? "It runs next" : "It was waiting to run already"),
    refreshes: ["/api/1/admin/jobs"],
  });
  const [wanted, setWanted] = useState("");
  const isWanted = (text: string) => text.toLowerCase().includes(wanted.trim().toLowerCase());
  const reportOf = new Map(reports.data?.items.map((report) => [report.runner, report]));
  const description =
    schedule.data?.current === false
      ? "The workers run another version of the schedule than this server; the one shown is this server's."
      : "What runs by itself, how its last run went, and when it runs next";
  return (
    <Panel title="Schedule" description={description}>
      <TextInput
        type="search"
        aria-label="Find a job"
        placeholder="Find a job or what it does"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={wanted}
        onChange={(event) => setWanted(event.currentTarget.value)}
        mb="sm"
        maw={460}
      />
      <DataTable
        caption="Recurring jobs"
        rows={schedule.data?.items.filter(({ name, doc, kwargs }) => isWanted(`${name} ${wordsIn(kwargs)} ${doc}`))}
        read={schedule}
        keyOf={({ digest }) => digest}
        expect={10}
        empty={<EmptyState title={wanted === "" ? "Nothing recurs" : "No job fits"} />}
        columns={[
          {
            title: "Job",
            cell: ({ name, doc, kwargs }) => <JobName name={name} doc={doc} of={wordsIn(kwargs)} />,
            sortBy: ({ name, kwargs }) => `${name} ${wordsIn(kwargs)}`,
          },
          { title: "Runs", cell: ({ schedule: plan }) => <Rhythm plan={plan} /> },
          { title: "Last run", cell: ({ name }) => <LastRun report={reportOf.get(name)} /> },
          {
            title: "Next",
            align: "right",
            sortBy: ({ next_run_at }) => next_run_at ?? Number.POSITIVE_INFINITY,
            cell: ({ next_run_at, overdue_by }) =>
              overdue_by > 60 ? <StateBadge state="overdue" /> : <Time at={next_run_at} never="not scheduled" />,
          },
          {
            title: "Run it",
            isActions: true,
            cell: ({ digest, name }) => (
              <Button
                size="xs"
                variant="default"
                leftSection={<IconPlayerPlay size={14} aria-hidden />}
                aria-label={`Run now: ${name}`}
                loading={run.isPending && run.variables?.path.digest === digest}
                onClick={() => run.mutate({ path: { digest } })}
              >
                Run now
              </Button>
            ),
          },
        ]}
        detail={({ name, kwargs, next_times }) => {
          const report = reportOf.get(name);
          return (
            <Stack gap="sm">
              <Text size="sm" component="div">
                After the next:{" "}
                {next_times.map((at, index) => (
                  <span key={at}>
                    {index > 0 && ", "}
                    <Time at={at} as="moment" />
                  </span>
                ))}
              </Text>
              {report && <JsonView value={{ stop_reason: report.stop_reason, ...report.counts }} />}
              {Object.keys(kwargs).length > 0 && <JsonView value={kwargs} />}
            </Stack>
          );
        }}
      />
    </Panel>
  );
}

/** What tells runs of the same job apart, such as the family of statistics that is moved. */
function wordsIn(kwargs: Readonly<Record<string, unknown>>): string {
  return Object.values(kwargs)
    .filter((value) => typeof value === "string" && /^[a-z_]+$/.test(value))
    .join(" ");
}

function Rhythm({ plan }: { readonly plan: Readonly<Record<string, unknown>> }) {
  return (
    <>
      {scheduleText(plan)}
      <Text size="xs" c="dimmed">
        {zoneText(plan)}
      </Text>
    </>
  );
}

function LastRun({ report }: { readonly report: Report | undefined }) {
  if (!report)
    return (
      <Text size="sm" c="dimmed">
        no report
      </Text>
    );
  return (
    <Stack gap={3} align="flex-start">
      <StateBadge state={report.state} label={report.state === "last_failed" ? "failed" : report.state} />
      {report.finished_at !== null && (
        <Text size="xs" c="dimmed" component="div">
          <Time at={report.finished_at} />
          <br />
          took <Duration seconds={report.running_time} />
        </Text>
      )}
    </Stack>
  );
}
