import { Anchor, Button, Group, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { carillon } from "../../api/index.ts";
import {
  CHANNEL_LABELS,
  CHANNEL_NAMES,
  DataTable,
  EmptyState,
  Num,
  PageHeader,
  Panel,
  Time,
  useKeyPages,
} from "../../parts/index.ts";
import { STRATEGIES } from "./draft.ts";

export function Page() {
  const [text, setText] = useState("");
  const [contains] = useDebouncedValue(text.trim(), 250);
  const { cursor, pager, reset } = useKeyPages<string>();
  // A search is a POST, so that its words stand in no address; it changes nothing, and is read like a page.
  const points = useQuery({
    queryKey: ["/api/1/admin/touch_points/search", contains, cursor],
    queryFn: ({ signal }) =>
      carillon.post("/api/1/admin/touch_points/search", {
        body: { contains, limit: 25, ...(cursor === undefined ? {} : { after: cursor }) },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHeader
        title="Touch points"
        actions={
          <Button component={Link} to="/touch-points/new" leftSection={<IconPlus size={16} aria-hidden />}>
            New touch point
          </Button>
        }
      >
        The events that people are told about, with the words for each channel.
      </PageHeader>
      <Panel>
        <TextInput
          label="Find a touch point"
          description="By a part of its name"
          placeholder="reminder"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            reset();
          }}
          mb="md"
          maw={460}
        />
        <DataTable
          caption="Touch points"
          rows={points.data?.items}
          read={points}
          keyOf={({ uid }) => uid}
          empty={
            <EmptyState title="No touch point has such a name">
              Make one with the button above, or look for another part of the name.
            </EmptyState>
          }
          columns={[
            {
              title: "Event",
              cell: ({ uid, event_slug }) => (
                <Anchor component={Link} to={`/touch-points/${uid}`} size="sm" fw={600}>
                  {event_slug}
                </Anchor>
              ),
            },
            {
              title: "Next message",
              cell: ({ selection_strategy }) => (
                <Text size="sm" c="dimmed">
                  {STRATEGIES[selection_strategy].label}
                </Text>
              ),
            },
            ...CHANNEL_NAMES.map((channel) => ({
              title: CHANNEL_LABELS[channel],
              align: "right" as const,
              cell: ({ messages }: { messages: Readonly<Record<string, readonly unknown[]>> }) => (
                <Num value={messages[channel]?.length || null} />
              ),
            })),
            {
              title: "Parameters",
              cell: ({ example }) => (
                <Group gap={5}>
                  <Text size="xs" c="dimmed" lineClamp={1}>
                    {Object.keys(example).join(", ") || "none"}
                  </Text>
                </Group>
              ),
            },
            { title: "Made", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
          ]}
        />
        {pager(points.data?.next)}
      </Panel>
    </>
  );
}
