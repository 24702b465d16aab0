import { Text } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { DataTable, EmptyState, numberText, Panel, StateBadge } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

/** As many outages within five minutes and a provider is passed over. */
const THRESHOLD = 10;

export function ProvidersPanel({ plan }: { readonly plan: ChannelPlan }) {
  const read = useRead("/api/1/admin/providers", undefined, { every: LIVE });
  const rows = read.data?.items.filter(({ channel }) => channel === plan.name);
  return (
    <Panel title="Providers" description="The preferred one first; one that keeps failing is passed over">
      <DataTable
        caption={`Who carries ${plan.messages}`}
        rows={rows}
        read={read}
        expect={2}
        keyOf={({ provider }) => provider}
        empty={
          <EmptyState title="No provider">
            {`Nobody carries ${plan.messages}: configure one, as docs/providers.md says.`}
          </EmptyState>
        }
        columns={[
          { title: "Provider", cell: ({ provider }) => <Text fw={600}>{provider}</Text> },
          {
            title: "Circuit",
            cell: ({ open, outages }) => (
              <>
                <StateBadge state={open ? "failed" : "ok"} label={open ? "open: passed over" : "closed: in use"} />
                <Text size="xs" c="dimmed" mt={4}>
                  {outages === 0 ? "no outage" : `${numberText(outages)} of ${THRESHOLD} outages`} in 5 minutes
                </Text>
              </>
            ),
          },
        ]}
      />
    </Panel>
  );
}
