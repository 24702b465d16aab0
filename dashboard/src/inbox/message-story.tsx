import { Code, Group, Stack, Text, Timeline, Title } from "@mantine/core";
import { StateBadge, Time } from "../parts/index.ts";
import type { MessageDetail } from "./messages.ts";

/** What happened to a message so far, and what Carillon answered to whoever told it. */
export function MessageStory({ message }: { readonly message: MessageDetail }) {
  const { history, webhooks } = message;
  return (
    <Stack gap="md">
      <div>
        <Title order={3} size="h6" mb="xs">
          What happened
        </Title>
        <Timeline bulletSize={14} lineWidth={2} active={history.length}>
          {history.map((step) => (
            <Timeline.Item
              key={`${step.at} ${step.status}`}
              title={
                <Group gap="xs">
                  <StateBadge state={step.status} />
                  {step.error !== null && <Text size="sm">{step.error}</Text>}
                </Group>
              }
            >
              <Text size="xs" c="dimmed" component="div">
                <Time at={step.at} />
              </Text>
            </Timeline.Item>
          ))}
        </Timeline>
      </div>
      <div>
        <Title order={3} size="h6" mb="xs">
          Webhooks
        </Title>
        {webhooks.length === 0 ? (
          <Text size="sm" c="dimmed">
            Carillon was not called about it.
          </Text>
        ) : (
          <Stack gap={6}>
            {webhooks.map((call) => (
              <Group key={`${call.at} ${call.kind} ${call.url}`} gap="xs">
                <StateBadge
                  state={call.answered !== null && call.answered < 300 ? "ok" : "failed"}
                  label={call.answered === null ? "no answer" : String(call.answered)}
                />
                <Text size="sm">{call.kind}</Text>
                <Text size="xs" c="dimmed" component="span">
                  <Time at={call.at} />
                </Text>
              </Group>
            ))}
          </Stack>
        )}
      </div>
      <Text size="xs" c="dimmed">
        {message.provider} knows it as <Code fz="xs">{message.provider_id}</Code>
      </Text>
    </Stack>
  );
}
