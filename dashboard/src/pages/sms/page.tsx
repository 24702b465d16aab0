import { Grid, Stack } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { CarriedPanel } from "../../parts/channel/carried-panel.tsx";
import { ChannelAlerts } from "../../parts/channel/channel-alerts.tsx";
import { FindMessages } from "../../parts/channel/find-messages.tsx";
import { OutcomeChart } from "../../parts/channel/outcome-chart.tsx";
import { PageTabs } from "../../parts/channel/page-tabs.tsx";
import { SMS } from "../../parts/channel/plan.ts";
import { ProvidersPanel } from "../../parts/channel/providers-panel.tsx";
import { Quarantine } from "../../parts/channel/quarantine.tsx";
import { TestSendButton } from "../../parts/channel/test-send.tsx";
import { TodayTiles } from "../../parts/channel/today-tiles.tsx";
import { WebhooksToday } from "../../parts/channel/webhooks-today.tsx";
import { FamilyCharts } from "../../parts/family-charts.tsx";
import { JobRuns, LiveIndicator, PageHeader } from "../../parts/index.ts";
import { SmsWay } from "./sms-way.tsx";
import { SuppressedPhones } from "./suppressed-phones.tsx";
import { TestSms } from "./test-sms.tsx";

const FAMILIES = ["sms_send", "sms_events", "sms_polling", "sms_webhooks"];
const JOBS = [
  "runners.sms.send",
  "runners.sms.receipt_reconciliation",
  "runners.sms.receipt_stale_detection",
  "runners.sms.receipt_recovery",
];
const TABS = [
  { name: "now", label: "Now", content: Now },
  { name: "charts", label: "Charts", content: () => <FamilyCharts families={FAMILIES} /> },
  { name: "find", label: "Find", content: () => <FindMessages plan={SMS} address="A phone number" /> },
  { name: "suppressed", label: "Suppressed", content: SuppressedPhones },
  { name: "quarantine", label: "Quarantine", content: () => <Quarantine plan={SMS} /> },
] as const;

export function Page() {
  const queue = useRead("/api/1/admin/sms/send_queue_info", undefined, { every: LIVE });
  return (
    <>
      <PageHeader
        title="SMS"
        actions={
          <>
            <LiveIndicator of={[queue]} />
            <TestSendButton title="Send a test">
              <TestSms />
            </TestSendButton>
          </>
        }
      >
        Texts on their way to phones, what became of them, and who wants none.
      </PageHeader>
      <PageTabs path="/sms" tabs={TABS} />
    </>
  );
}

function Now() {
  return (
    <Stack gap="md">
      <TodayTiles plan={SMS} />
      <SmsWay />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <OutcomeChart plan={SMS} height={400} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack gap="md">
            <ProvidersPanel plan={SMS} />
            <WebhooksToday family="sms_webhooks" about="How the provider's reports of today were taken" />
            <ChannelAlerts plan={SMS} />
          </Stack>
        </Grid.Col>
      </Grid>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <JobRuns jobs={JOBS} description="Of the jobs that move texts along" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <CarriedPanel plan={SMS} />
        </Grid.Col>
      </Grid>
    </Stack>
  );
}
