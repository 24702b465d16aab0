import { Grid, SimpleGrid, Stack } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { CarriedPanel } from "../../parts/channel/carried-panel.tsx";
import { ChannelAlerts } from "../../parts/channel/channel-alerts.tsx";
import { FindMessages } from "../../parts/channel/find-messages.tsx";
import { OutcomeChart } from "../../parts/channel/outcome-chart.tsx";
import { PageTabs } from "../../parts/channel/page-tabs.tsx";
import { EMAIL } from "../../parts/channel/plan.ts";
import { ProvidersPanel } from "../../parts/channel/providers-panel.tsx";
import { Quarantine } from "../../parts/channel/quarantine.tsx";
import { TestMail } from "../../parts/channel/test-mail.tsx";
import { TestSendButton } from "../../parts/channel/test-send.tsx";
import { TodayTiles } from "../../parts/channel/today-tiles.tsx";
import { WebhooksToday } from "../../parts/channel/webhooks-today.tsx";
import { FamilyCharts } from "../../parts/family-charts.tsx";
import { JobRuns, LiveIndicator, PageHeader } from "../../parts/index.ts";
import { Bounces } from "./bounces.tsx";
import { EmailWay } from "./email-way.tsx";
import { HealthPanel } from "./health-panel.tsx";
import { PendingMails } from "./pending-mails.tsx";
import { SuppressedEmails } from "./suppressed-emails.tsx";

const FAMILIES = ["email_send", "email_events", "email_webhooks"];
const JOBS = ["runners.emails.send", "runners.emails.receipt_reconciliation", "runners.emails.stale_receipt_detection"];
const TABS = [
  { name: "now", label: "Now", content: Now },
  { name: "charts", label: "Charts", content: () => <FamilyCharts families={FAMILIES} /> },
  { name: "pending", label: "Awaiting receipts", content: PendingMails },
  { name: "find", label: "Find", content: () => <FindMessages plan={EMAIL} address="An email address" /> },
  { name: "suppressed", label: "Suppressed", content: SuppressedEmails },
  { name: "bounces", label: "Bounces", content: Bounces },
  { name: "quarantine", label: "Quarantine", content: () => <Quarantine plan={EMAIL} /> },
] as const;

export function Page() {
  const queue = useRead("/api/1/admin/email/send_queue_info", undefined, { every: LIVE });
  return (
    <>
      <PageHeader
        title="Email"
        actions={
          <>
            <LiveIndicator of={[queue]} />
            <TestSendButton title="Send a test">
              <TestMail />
            </TestSendButton>
          </>
        }
      >
        Mails on their way to mailboxes, how they are received, and who wants none.
      </PageHeader>
      <PageTabs path="/email" tabs={TABS} />
    </>
  );
}

function Now() {
  return (
    <Stack gap="md">
      <TodayTiles plan={EMAIL} />
      <EmailWay />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <OutcomeChart plan={EMAIL} height={260} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <HealthPanel />
        </Grid.Col>
      </Grid>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <JobRuns jobs={JOBS} description="Of the jobs that move mails along" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <CarriedPanel plan={EMAIL} />
        </Grid.Col>
      </Grid>
      <SimpleGrid cols={{ base: 1, lg: 3 }} spacing="md">
        <ProvidersPanel plan={EMAIL} />
        <WebhooksToday family="email_webhooks" about="How the provider's reports of today were taken" />
        <ChannelAlerts plan={EMAIL} />
      </SimpleGrid>
    </Stack>
  );
}
