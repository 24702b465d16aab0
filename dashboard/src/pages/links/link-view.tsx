import { Anchor, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { LIVE, useRead } from "../../api/index.ts";
import type { Tone } from "../../app/theme.ts";
import {
  DataTable,
  EmptyState,
  ErrorState,
  JsonView,
  LoadingState,
  numberText,
  StateBadge,
  Time,
} from "../../parts/index.ts";
import { ruleText } from "./clicks.ts";

const STATES: Readonly<Record<string, { readonly tone: Tone; readonly text: string }>> = {
  buffered: { tone: "info", text: "It works, and waits to hear whether its message arrived." },
  persistable: { tone: "info", text: "Its message arrived; it is stored soon." },
  persisting: { tone: "info", text: "It is being stored at this moment." },
  persisted: { tone: "good", text: "It is stored." },
  gone: { tone: "bad", text: "There is no such link, or its message failed." },
};
const KEPT = { buffer: "waits in Redis", delayed: "waits for its link", sql: "stored" } as const;

/** Everything that is known of one link: where it is in its life, where it leads, who followed it. */
export function LinkView({ code }: { readonly code: string }) {
  const read = useRead("/api/1/admin/touch/links/{code}", { path: { code } }, { every: LIVE });
  const { data } = read;
  if (!data) return read.error ? <ErrorState error={read.error} retry={() => void read.refetch()} /> : <LoadingState />;
  const robots = Object.entries(data.robots);
  const { tone, text } = STATES[data.state]!;
  return (
    <Stack gap="md" mt="lg">
      <Group gap="sm">
        <Title order={2} size="h5">
          {code}
        </Title>
        <StateBadge state={data.state} tone={tone} />
        <Text size="sm" c="dimmed">
          {text}
        </Text>
      </Group>
      {data.link && (
        <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
          <Text size="sm" component="div">
            Leads to <strong>{data.link.page_identifier}</strong>
            <br />
            looks like <strong>{data.link.preview_identifier}</strong>
          </Text>
          <Text size="sm" component="div">
            Made <Time at={data.link.created_at} />
            {data.persist_at !== null && (
              <>
                <br />
                stored <Time at={data.persist_at} />
              </>
            )}
          </Text>
          <Text size="sm" component="div">
            Of the touch{" "}
            <Anchor component={Link} to={`/touches/${data.link.touch_uid}`} size="sm">
              {data.link.touch_uid}
            </Anchor>
          </Text>
        </SimpleGrid>
      )}
      {data.link && Object.keys({ ...data.link.page_extra, ...data.link.preview_extra }).length > 0 && (
        <JsonView value={{ page: data.link.page_extra, preview: data.link.preview_extra }} maxHeight={180} />
      )}
      <Text size="sm" component="div">
        <strong>{numberText(data.clicks.length)}</strong> {data.clicks.length === 1 ? "use" : "uses"} by people
        {robots.length > 0 && (
          <>
            , and apart from them {robots.map(([rule, uses]) => `${numberText(uses)} by ${ruleText(rule)}`).join(", ")}
          </>
        )}
      </Text>
      <DataTable
        caption="Clicks of the link"
        rows={data.clicks}
        keyOf={({ uid }) => uid}
        empty={<EmptyState title="Nobody has followed it yet" />}
        columns={[
          {
            title: "What",
            cell: ({ track_type }) => (track_type === "on_click" ? "clicked" : "signed in after the click"),
          },
          {
            title: "Who",
            cell: ({ user_sub, visitor_uid }) =>
              user_sub === null ? (
                (visitor_uid ?? "nobody known")
              ) : (
                <Anchor component={Link} to={`/people/${encodeURIComponent(user_sub)}`} size="sm">
                  {user_sub}
                </Anchor>
              ),
          },
          { title: "Kept", cell: ({ kept }) => KEPT[kept] },
          { title: "When", align: "right", cell: ({ clicked_at }) => <Time at={clicked_at} /> },
        ]}
      />
    </Stack>
  );
}
