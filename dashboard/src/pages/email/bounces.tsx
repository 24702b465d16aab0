import { Button, Group, TextInput } from "@mantine/core";
import { IconCircleCheck, IconSearch } from "@tabler/icons-react";
import { useRead } from "../../api/index.ts";
import { useSearchOf } from "../../parts/channel/suppressions.tsx";
import { DataTable, EmptyState, JsonView, Panel, StateBadge, Time } from "../../parts/index.ts";

const PAGE = 25;

/** Bounces and complaints as providers told them. */
export function Bounces() {
  const find = useSearchOf<never>();
  const { text, after } = find.search;
  const read = useRead(
    "/api/1/admin/email/failures",
    { query: { limit: PAGE, email: text || undefined, after } },
    { every: 5 },
  );
  const next = read.data?.next ?? null;
  return (
    <Panel title="Bounces and complaints" description="The newest first, as providers told them">
      <TextInput
        label="Search by email address"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={find.text}
        onChange={(event) => find.setText(event.currentTarget.value)}
        mb="md"
        maw={320}
      />
      <DataTable
        caption="Bounces and complaints"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        empty={
          <EmptyState title="None" icon={<IconCircleCheck size={22} />}>
            {text === "" ? "No mail has bounced, and nobody has complained." : "Nothing fits this search."}
          </EmptyState>
        }
        columns={[
          { title: "Email address", cell: ({ email_address }) => email_address },
          {
            title: "What",
            cell: ({ failure_type }) => (
              <StateBadge state={failure_type === "Bounce" ? "bounced" : "complained"} tone="bad" />
            ),
          },
          { title: "Kind", cell: ({ failure_extra }) => failure_extra ?? "–" },
          { title: "When", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
        detail={({ uid, message_id }) => <JsonView value={{ uid, message_id }} />}
      />
      {(!find.isFirst || next !== null) && (
        <Group justify="flex-end" mt="sm">
          <Button variant="default" size="xs" disabled={find.isFirst} onClick={find.newer}>
            Newer
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={next === null}
            onClick={() => next !== null && find.older(next)}
          >
            Older
          </Button>
        </Group>
      )}
    </Panel>
  );
}
