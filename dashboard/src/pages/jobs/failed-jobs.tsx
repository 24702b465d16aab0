import { Button, Group, Text } from "@mantine/core";
import { IconCircleCheck, IconRefresh, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import { ConfirmButton, DataTable, EmptyState, JsonView, Panel, StateBadge, Time } from "../../parts/index.ts";
import { JobName } from "./running-jobs.tsx";

const PAGE = 25;
const REFRESHES = ["/api/1/admin/jobs"];

export function FailedJobs() {
  const [offset, setOffset] = useState(0);
  const failed = useRead("/api/1/admin/jobs/failed", { query: { limit: PAGE, offset } }, { every: LIVE });
  const retry = useChange("post", "/api/1/admin/jobs/failed/{id}/requeue", {
    done: "Queued again, with fresh counters",
    refreshes: REFRESHES,
  });
  const discard = useChange("delete", "/api/1/admin/jobs/failed/{id}", { done: "Discarded", refreshes: REFRESHES });
  const rows = failed.data?.items;
  return (
    <Panel
      title="Failed jobs"
      description="They will not run again by themselves: give each another chance, or discard it"
    >
      <DataTable
        caption="Failed jobs, the newest first"
        rows={rows}
        read={failed}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title="No failed jobs" icon={<IconCircleCheck size={22} />}>
            A job comes here when it has used up its attempts, or was poison to its workers.
          </EmptyState>
        }
        columns={[
          { title: "Job", cell: ({ name }) => <JobName name={name} /> },
          { title: "Why", cell: ({ reason }) => <StateBadge state={reason} tone="bad" /> },
          {
            title: "Error",
            cell: ({ error }) => (
              <Text size="sm" lineClamp={2}>
                {error}
              </Text>
            ),
          },
          { title: "Failed", align: "right", cell: ({ failed_at }) => <Time at={failed_at} /> },
          {
            title: "What to do",
            isActions: true,
            cell: ({ id, name }) => (
              <>
                <Button
                  size="xs"
                  variant="default"
                  leftSection={<IconRefresh size={14} aria-hidden />}
                  aria-label={`Retry: ${name}`}
                  loading={retry.isPending && retry.variables?.path.id === id}
                  onClick={() => retry.mutate({ path: { id } })}
                >
                  Retry
                </Button>
                <ConfirmButton
                  label={`Discard: ${name}`}
                  question="The job is forgotten for good, with everything it carries."
                  leftSection={<IconTrash size={14} aria-hidden />}
                  onConfirm={() => discard.mutate({ path: { id } })}
                >
                  Discard
                </ConfirmButton>
              </>
            ),
          },
        ]}
        detail={({ error, raw, worker, deliveries }) => (
          <>
            <Text size="sm" mb="xs">
              {error}
            </Text>
            <Text size="xs" c="dimmed" mb="xs">
              Worker {worker}, {deliveries} deliveries
            </Text>
            <JsonView value={raw} />
          </>
        )}
      />
      {(offset > 0 || rows?.length === PAGE) && (
        <Group justify="flex-end" mt="sm">
          <Button
            variant="default"
            size="xs"
            disabled={offset === 0}
            onClick={() => setOffset(Math.max(0, offset - PAGE))}
          >
            Newer
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={(rows?.length ?? 0) < PAGE}
            onClick={() => setOffset(offset + PAGE)}
          >
            Older
          </Button>
        </Group>
      )}
    </Panel>
  );
}
