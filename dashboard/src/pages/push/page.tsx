import { Grid, Stack } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { CarriedPanel } from "../../parts/channel/carried-panel.tsx";
import { ChannelAlerts } from "../../parts/channel/channel-alerts.tsx";
import { FindMessages } from "../../parts/channel/find-messages.tsx";
import { OutcomeChart } from "../../parts/channel/outcome-chart.tsx";
import { PageTabs } from "../../parts/channel/page-tabs.tsx";
import { PUSH } from "../../parts/channel/plan.ts";
import { ProvidersPanel } from "../../parts/channel/providers-panel.tsx";
import { Quarantine } from "../../parts/channel/quarantine.tsx";
import { TestSendButton } from "../../parts/channel/test-send.tsx";
import { TodayTiles } from "../../parts/channel/today-tiles.tsx";
import { FamilyCharts } from "../../parts/family-charts.tsx";
import { JobRuns, LiveIndicator, PageHeader } from "../../parts/index.ts";
import { PushWay } from "./push-way.tsx";
import { TestPush } from "./test-push.tsx";

const JOBS = ["runners.push.send", "runners.push.ticket_hot_to_cold", "runners.push.check"];
const TABS = [
  { name: "now", label: "Now", content: Now },
  { name: "charts", label: "Charts", content: () => <FamilyCharts families={FAMILIES} /> },
  { name: "find", label: "Find", content: () => <FindMessages plan={PUSH} address="A push token" /> },
  { name: "quarantine", label: "Quarantine", content: () => <Quarantine plan={PUSH} /> },
] as const;
const FAMILIES = ["push_tickets", "push_receipts", "push_tokens"];

export function Page() {
  const overview = useRead("/api/1/admin/notifs/queue_overview", undefined, { every: LIVE });
  return (
    <>
      <PageHeader
        title="Push"
        actions={
          <>
            <LiveIndicator of={[overview]} />
            <TestSendButton title="Send a test">
              <TestPush />
            </TestSendButton>
          </>
        }
      >
        Notifications on their way to devices, and what became of them.
      </PageHeader>
      <PageTabs path="/push" tabs={TABS} />
    </>
  );
}

function Now() {
  return (
    <Stack gap="md">
      <TodayTiles plan={PUSH} />
      <PushWay />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <OutcomeChart plan={PUSH} height={345} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack gap="md">
            <ProvidersPanel plan={PUSH} />
            <ChannelAlerts plan={PUSH} />
          </Stack>
        </Grid.Col>
      </Grid>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <JobRuns jobs={JOBS} description="Of the jobs that move notifications along" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <CarriedPanel plan={PUSH} />
        </Grid.Col>
      </Grid>
    </Stack>
  );
}
