import { Code, Stack, Text } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { MessageStory } from "../../parts/channel/message-story.tsx";
import { DataTable, EmptyState, JsonView, numberText, Panel, Time } from "../../parts/index.ts";

/** Mails that the provider took and of which nothing was heard since. */
export function PendingMails() {
  const read = useRead("/api/1/admin/email/receipt_pending_info", undefined, { every: LIVE });
  const count = read.data?.count ?? 0;
  const shown = read.data?.items.length ?? 0;
  return (
    <Panel
      title="Awaiting receipts"
      description={
        count > shown
          ? `The ${numberText(shown)} that wait longest, of ${numberText(count)}`
          : "Accepted by the provider; whether they arrived is not known yet"
      }
    >
      <DataTable
        caption="Mails that await their receipt, the oldest first"
        rows={read.data?.items}
        read={read}
        keyOf={({ message_id }) => message_id}
        empty={
          <EmptyState title="No mail awaits its receipt">
            Mails are listed here from the moment that the provider takes them until it tells how they ended.
          </EmptyState>
        }
        columns={[
          { title: "Subject", cell: ({ subject }) => <Text size="sm">{subject}</Text> },
          { title: "To", cell: ({ email }) => email },
          { title: "Template", cell: ({ template }) => <Code fz="sm">{template}</Code> },
          {
            title: "Accepted",
            align: "right",
            cell: ({ send_accepted_at }) => <Time at={send_accepted_at} />,
            sortBy: ({ send_accepted_at }) => send_accepted_at,
          },
        ]}
        detail={({ uid, template_parameters }) => (
          <Stack gap="md">
            <MessageStory uid={uid} />
            <JsonView value={template_parameters} />
          </Stack>
        )}
      />
    </Panel>
  );
}
