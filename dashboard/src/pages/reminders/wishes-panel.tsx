import { Group, Progress, Stack, Text } from "@mantine/core";
import { CALM, useRead } from "../../api/index.ts";
import { EmptyState, ErrorState, LoadingState, numberText, Panel } from "../../parts/index.ts";

const NAMES: Readonly<Record<string, string>> = {
  "text-any": "Any time, or hours of their own",
  "text-morning": "In the morning",
  "text-afternoon": "In the afternoon",
  "text-evening": "In the evening",
  unset: "No choice",
};

/** When people want texts, as they said. */
export function WishesPanel() {
  const read = useRead("/api/1/admin/user_notification_settings", undefined, { every: CALM });
  const wishes = Object.entries(read.data?.counts ?? {}).map(([name, count]) => [name, Number(count)] as const);
  const whole = Math.max(1, ...wishes.map(([, count]) => count));
  return (
    <Panel title="When people want texts" description="As they chose, now" h="100%">
      {read.data ? (
        wishes.length === 0 ? (
          <EmptyState title="Nobody has been asked yet" />
        ) : (
          <Stack gap="md" mt="sm">
            {wishes.map(([name, count]) => (
              <div key={name}>
                <Group justify="space-between" gap="xs" mb={4}>
                  <Text size="sm">{NAMES[name] ?? name.replaceAll("-", " ")}</Text>
                  <Text size="sm" fw={600}>
                    {numberText(count)}
                  </Text>
                </Group>
                <Progress value={(100 * count) / whole} color="var(--series-sms)" aria-hidden size="md" />
              </div>
            ))}
          </Stack>
        )
      ) : read.error ? (
        <ErrorState error={read.error} retry={() => void read.refetch()} />
      ) : (
        <LoadingState lines={5} />
      )}
    </Panel>
  );
}
