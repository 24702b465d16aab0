import { Alert, Button, Group, Progress, Stack, Text, TextInput } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { type Answer, useChange, useRead } from "../../api/index.ts";
import { ErrorState, LoadingState, numberText, Panel, PopoverForm, StateBadge, Time } from "../../parts/index.ts";

type Health = Answer<"get", "/api/1/admin/email/health">;
type Level = NonNullable<Health["reputation"]>["bounce_level"];

const TONES = { good: "good", warning: "warn", critical: "bad" } as const;
const SIGNERS = { provider: "by the provider", own: "here, with a key of our own", none: "by nobody, as far as known" };
const REFRESHES = ["/api/1/admin/email"];

/** Whether mails may be sent, how receivers like them, and the brake for mails of lists. */
export function HealthPanel() {
  const read = useRead("/api/1/admin/email/health", undefined, { every: 10 });
  const health = read.data;
  return (
    <Panel title="Standing" description="How providers and receivers see this sender, over seven days" h="100%">
      {!health ? (
        read.error ? (
          <ErrorState error={read.error} retry={() => void read.refetch()} />
        ) : (
          <LoadingState lines={6} />
        )
      ) : (
        <Stack gap="sm">
          <Lists lists={health.lists} />
          <Reputation reputation={health.reputation} />
          <Facts health={health} />
        </Stack>
      )}
    </Panel>
  );
}

function Reputation({ reputation }: { readonly reputation: Health["reputation"] }) {
  if (!reputation) return <Fact name="Reputation">not known while the database is away</Fact>;
  const { accepted, bounced, complained } = reputation;
  return (
    <>
      <Fact name="Bounces">
        <Rate rate={reputation.bounce_rate} level={reputation.bounce_level} /> ({numberText(bounced)} of{" "}
        {numberText(accepted)})
      </Fact>
      <Fact name="Complaints">
        <Rate rate={reputation.complaint_rate} level={reputation.complaint_level} /> ({numberText(complained)} of{" "}
        {numberText(accepted)})
      </Fact>
    </>
  );
}

function Rate({ rate, level }: { readonly rate: number; readonly level: Level }) {
  return <StateBadge state={level} label={numberText(rate, "percent")} tone={TONES[level]} />;
}

function Facts({
  health: { sending_enabled, quota, signatures, last_webhook_at, topics },
}: {
  readonly health: Health;
}) {
  return (
    <>
      <Fact name="Sending">
        {sending_enabled === null ? (
          "the provider does not tell"
        ) : (
          <StateBadge state={sending_enabled ? "ok" : "failed"} label={sending_enabled ? "allowed" : "stopped"} />
        )}
      </Fact>
      {quota && (
        <div>
          <Fact name="Quota">
            {numberText(quota.sent_24h)} of {numberText(quota.max_24h)} in 24 hours, {numberText(quota.max_per_second)}{" "}
            a second
          </Fact>
          <Progress
            value={quota.max_24h > 0 ? (100 * quota.sent_24h) / quota.max_24h : 0}
            size="sm"
            mt={6}
            aria-label="Share of the quota that is used"
          />
        </div>
      )}
      <Fact name="Signed (DKIM)">{SIGNERS[signatures]}</Fact>
      <Fact name="Last report">
        <Time at={last_webhook_at} never="none yet" />
      </Fact>
      <Fact name="Topics">{topics.length === 0 ? "none is named" : topics.join(", ")}</Fact>
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <Group justify="space-between" gap="sm" wrap="nowrap" align="flex-start">
      <Text size="sm" c="dimmed" flex="none">
        {name}
      </Text>
      <Text size="sm" component="div" ta="right">
        {children}
      </Text>
    </Group>
  );
}

function Lists({ lists }: { readonly lists: Health["lists"] }) {
  const resume = useChange("post", "/api/1/admin/email/lists/resume", {
    done: ({ resumed }) => (resumed ? "Mails of lists go on" : "They were not paused"),
    refreshes: REFRESHES,
  });
  if (!lists.paused)
    return (
      <Group justify="space-between" gap="sm">
        <Group gap="xs">
          <Text size="sm" c="dimmed">
            Mails of lists
          </Text>
          <StateBadge state="ok" label="go out" />
        </Group>
        <PauseButton />
      </Group>
    );
  return (
    <Alert color="var(--tone-warn)" icon={<IconPlayerPause />} title="Mails of lists are paused">
      <Stack gap="xs" align="flex-start">
        <Text size="sm" component="div">
          {lists.reason} (since <Time at={lists.since} />; {numberText(lists.aside)} set aside)
        </Text>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconPlayerPlay size={14} aria-hidden />}
          loading={resume.isPending}
          onClick={() => resume.mutate({})}
        >
          Let them go on
        </Button>
      </Stack>
    </Alert>
  );
}

function PauseButton() {
  const [reason, setReason] = useState("");
  const pause = useChange("post", "/api/1/admin/email/lists/pause", {
    done: "Mails of lists are paused; codes and other single mails go on",
    refreshes: REFRESHES,
  });
  return (
    <PopoverForm
      label="Pause lists"
      button={{ size: "xs", variant: "default", leftSection: <IconPlayerPause size={14} aria-hidden /> }}
      onSubmit={(close) => pause.mutate({ body: { reason } }, { onSuccess: close })}
    >
      <TextInput
        label="Why"
        description="Mails of lists are set aside until somebody lets them go on"
        required
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus
      />
      <Button type="submit" size="xs" color="red.8" loading={pause.isPending} disabled={reason.trim() === ""}>
        Pause them
      </Button>
    </PopoverForm>
  );
}
