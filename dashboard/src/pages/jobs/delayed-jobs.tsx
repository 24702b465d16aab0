import { LIVE, useRead } from "../../api/index.ts";
import { DataTable, EmptyState, JsonView, Num, Panel, Time } from "../../parts/index.ts";
import { JobName } from "./running-jobs.tsx";

const SHOWN = 100;

export function DelayedJobs() {
  const delayed = useRead("/api/1/admin/jobs/delayed", { query: { limit: SHOWN } }, { every: LIVE });
  return (
    <Panel title="Delayed jobs" description={`Retries and jobs for later; the ${SHOWN} that are due first`}>
      <DataTable
        caption="Jobs that wait for their time"
        rows={delayed.data?.items}
        read={delayed}
        keyOf={(job) => `${job.due_at} ${job.name} ${JSON.stringify(job.kwargs)}`}
        empty={
          <EmptyState title="Nothing waits for its time">
            Retries of failed jobs and jobs for later appear here.
          </EmptyState>
        }
        columns={[
          { title: "Job", cell: ({ name }) => <JobName name={name} /> },
          { title: "Due", align: "right", cell: ({ due_at }) => <Time at={due_at} />, sortBy: ({ due_at }) => due_at },
          { title: "Attempts so far", align: "right", cell: ({ attempt }) => <Num value={attempt} /> },
          { title: "Queued", align: "right", cell: ({ queued_at }) => <Time at={queued_at} /> },
        ]}
        detail={({ kwargs }) => <JsonView value={kwargs} />}
      />
    </Panel>
  );
}
