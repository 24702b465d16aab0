import { Anchor, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { LIVE, useRead } from "../../api/index.ts";
import {
  addressText,
  ChannelMark,
  DataTable,
  EmptyState,
  JsonView,
  Panel,
  Time,
  useKeyPages,
} from "../../parts/index.ts";

/** What reached somebody; each leads to its timeline. */
export function Touches({ sub }: { readonly sub: string }) {
  const { cursor, pager } = useKeyPages<number>();
  const read = useRead(
    "/api/1/admin/users/{sub}/touches",
    { path: { sub }, query: { limit: 25, before: cursor } },
    { every: LIVE },
  );
  return (
    <Panel title="Touches" description="What reached them, the newest first">
      <DataTable
        caption="Touches that reached the person, the newest first"
        rows={read.data?.items}
        read={read}
        keyOf={({ uid }) => uid}
        empty={
          <EmptyState title="Nothing has reached them yet">Attempts that failed are in the debug trail.</EmptyState>
        }
        columns={[
          {
            title: "About",
            cell: ({ touch_uid, event_slug }) => (
              <Anchor component={Link} to={`/touches/${touch_uid}`} size="sm" fw={550}>
                {event_slug ?? "a touch point that is gone"}
              </Anchor>
            ),
          },
          { title: "Channel", cell: ({ channel }) => <ChannelMark channel={channel} /> },
          {
            title: "Words",
            cell: ({ message }) => (
              <Text size="sm" lineClamp={2}>
                {wordsOf(message)}
              </Text>
            ),
          },
          { title: "To", cell: ({ destination }) => addressText(destination) },
          { title: "Arrived", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
        detail={({ message }) => <JsonView value={message} />}
      />
      {pager(read.data?.next)}
    </Panel>
  );
}

function wordsOf(message: Readonly<Record<string, unknown>>): string {
  const { title, body, subject } = message;
  return [title, body, subject].filter((part) => typeof part === "string").join(": ") || "–";
}
