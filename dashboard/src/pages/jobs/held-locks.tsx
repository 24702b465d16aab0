import { Code } from "@mantine/core";
import { IconLockOpen } from "@tabler/icons-react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import { ConfirmButton, DataTable, Duration, EmptyState, Panel, StateBadge } from "../../parts/index.ts";

export function HeldLocks() {
  const locks = useRead("/api/1/admin/locks", undefined, { every: LIVE });
  const release = useChange("delete", "/api/1/admin/locks/{key}", {
    done: "The lock is free",
    refreshes: ["/api/1/admin/locks"],
  });
  return (
    <Panel title="Locks" description="Held now. A lock of a dead process ends by itself when its time to live is over">
      <DataTable
        caption="Locks that are held now"
        rows={locks.data?.items}
        read={locks}
        keyOf={({ key }) => key}
        empty={<EmptyState title="No lock is held">Jobs that must be alone hold one while they run.</EmptyState>}
        columns={[
          { title: "Lock", cell: ({ key }) => <Code fz="sm">{key}</Code>, sortBy: ({ key }) => key },
          {
            title: "Holder",
            cell: ({ holder, malformed }) =>
              malformed ? <StateBadge state="error" label="unreadable" /> : (holder ?? "not told"),
          },
          {
            title: "Held for",
            align: "right",
            cell: ({ age }) => <Duration seconds={age} />,
            sortBy: ({ age }) => age ?? 0,
          },
          { title: "Ends in", align: "right", cell: ({ ttl }) => <Duration seconds={ttl} /> },
          {
            title: "Release",
            isActions: true,
            cell: ({ key }) => (
              <ConfirmButton
                label={`Release: ${key}`}
                leftSection={<IconLockOpen size={14} aria-hidden />}
                question="Whoever holds it notices at its next step and leaves the rest to the next one. Do this when the holder is certainly gone."
                confirm="Release it"
                onConfirm={() => release.mutate({ path: { key } })}
              >
                Release
              </ConfirmButton>
            ),
          },
        ]}
      />
    </Panel>
  );
}
