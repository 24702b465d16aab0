import { Code, Group, Progress, Stack, Text } from "@mantine/core";
import { type Answer, LIVE, useChange, useRead } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import {
  ChannelMark,
  ConfirmButton,
  counted,
  DataTable,
  Duration,
  EmptyState,
  JsonView,
  LiveIndicator,
  Num,
  numberText,
  PageHeader,
  Panel,
  StateBadge,
  Time,
  useKeyPages,
} from "../../parts/index.ts";
import { NewCampaign } from "./new-campaign.tsx";

type Campaign = Answer<"get", "/api/1/admin/campaigns">["items"][number];

export function Page() {
  const { cursor, pager } = useKeyPages<number>();
  const campaigns = useRead("/api/1/admin/campaigns", { query: { limit: 20, before: cursor } }, { every: LIVE });
  return (
    <>
      <PageHeader
        title="Campaigns"
        actions={
          <>
            <LiveIndicator of={[campaigns]} />
            <NewCampaign />
          </>
        }
      >
        Each tells one event to everybody who can be reached on one channel, one touch for each person.
      </PageHeader>
      <Panel>
        <DataTable
          caption="Campaigns, the newest first"
          rows={campaigns.data?.items}
          read={campaigns}
          keyOf={({ uid }) => uid}
          empty={
            <EmptyState title="Nobody was told anything yet">
              Begin a campaign with the button above; you see whom it reaches before it does.
            </EmptyState>
          }
          columns={[
            {
              title: "Event",
              cell: ({ event_slug }) => (
                <Text size="sm" fw={550}>
                  {event_slug}
                </Text>
              ),
            },
            { title: "Channel", cell: ({ channel }) => <ChannelMark channel={channel} /> },
            { title: "State", cell: ({ state }) => <StateBadge state={state} /> },
            { title: "Progress", cell: (campaign) => <HowFar campaign={campaign} /> },
            { title: "People told", align: "right", cell: ({ told }) => <Num value={told} /> },
            { title: "Began", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
            {
              title: "Actions",
              align: "right",
              isActions: true,
              cell: (campaign) => campaign.state === "running" && <Stop campaign={campaign} />,
            },
          ]}
          detail={(campaign) => <Details campaign={campaign} />}
        />
        {pager(campaigns.data?.next)}
      </Panel>
    </>
  );
}

function HowFar({ campaign: { event_slug, share, created_at, ended_at } }: { readonly campaign: Campaign }) {
  if (share === null)
    return (
      <Text size="sm" c="dimmed">
        {ended_at === null ? (
          "–"
        ) : (
          <>
            took <Duration seconds={Math.max(0, ended_at - created_at)} />
          </>
        )}
      </Text>
    );
  return (
    <Group gap="xs" wrap="nowrap" miw={140}>
      <Progress
        value={share * 100}
        color={SERIES.good}
        flex={1}
        miw={80}
        aria-label={`How far the campaign of ${event_slug} is`}
      />
      <Text size="xs" c="dimmed">
        {numberText(share, "percent")}
      </Text>
    </Group>
  );
}

function Stop({ campaign: { uid, event_slug, told } }: { readonly campaign: Campaign }) {
  const stop = useChange("delete", "/api/1/admin/campaigns/{uid}", {
    done: "The campaign is stopped",
    refreshes: ["/api/1/admin/campaigns"],
  });
  return (
    <ConfirmButton
      label={`Stop the campaign of ${event_slug}`}
      question={`${counted(told, "person has", "people have")} a touch of it already and will get it. Nobody else will.`}
      confirm="Stop it"
      loading={stop.isPending}
      onConfirm={() => stop.mutate({ path: { uid } })}
    >
      Stop
    </ConfirmButton>
  );
}

function Details({ campaign: { uid, reason, ended_at, event_parameters } }: { readonly campaign: Campaign }) {
  return (
    <Stack gap="xs">
      {reason !== null && (
        <Text size="sm" c="var(--tone-bad)">
          {reason}
        </Text>
      )}
      <Group gap="lg" fz="sm">
        <Code>{uid}</Code>
        {ended_at !== null && (
          <span>
            ended <Time at={ended_at} />
          </span>
        )}
      </Group>
      <JsonView value={event_parameters} maxHeight={220} />
    </Stack>
  );
}
