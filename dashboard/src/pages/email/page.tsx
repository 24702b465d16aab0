import { Grid, SimpleGrid, Stack } from "@mantine/core";
import { LIVE, useRead } from "../../api/index.ts";
import { LiveIndicator, PageHeader } from "../../parts/index.ts";
import { ChannelAlerts } from "../channel/channel-alerts.tsx";
import { FamilyCharts } from "../channel/family-charts.tsx";
import { FindMessages } from "../channel/find-messages.tsx";
import { LastRuns } from "../channel/last-runs.tsx";
import { OutcomeChart } from "../channel/outcome-chart.tsx";
import { PageTabs } from "../channel/page-tabs.tsx";
import { EMAIL } from "../channel/plan.ts";
import { ProvidersPanel } from "../channel/providers-panel.tsx";
import { Quarantine } from "../channel/quarantine.tsx";
import { TestSendButton } from "../channel/test-send.tsx";
import { TodayTiles } from "../channel/today-tiles.tsx";
import { WebhooksToday } from "../channel/webhooks-today.tsx";
import { Bounces } from "./bounces.tsx";
import { EmailWay } from "./email-way.tsx";
import { HealthPanel } from "./health-panel.tsx";
import { PendingMails } from "./pending-mails.tsx";
import { SuppressedEmails } from "./suppressed-emails.tsx";
import { TestMail } from "./test-mail.tsx";

const FAMILIES = ["email_send", "email_events", "email_webhooks"];
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
      <LastRuns plan={EMAIL} />
      <SimpleGrid cols={{ base: 1, lg: 3 }} spacing="md">
        <ProvidersPanel plan={EMAIL} />
        <WebhooksToday family="email_webhooks" about="How the provider's reports of today were taken" />
        <ChannelAlerts plan={EMAIL} />
      </SimpleGrid>
    </Stack>
  );
}
