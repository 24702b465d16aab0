import { Progress, Text } from "@mantine/core";
import { countOf, useToday } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { EmptyState, ErrorState, LoadingState, numberText, Panel } from "../index.ts";

/** Why a webhook was refused, as it is counted. */
const REFUSED = [
  "unprocessable",
  "signature_missing",
  "signature_invalid",
  "body_read_error",
  "body_max_size_exceeded",
  "body_parse_error",
] as const;

interface WebhooksTodayProps {
  readonly family: "sms_webhooks" | "email_webhooks";
  readonly about: string;
}

/** How webhooks of today were taken: accepted, or refused and why. */
export function WebhooksToday({ family, about }: WebhooksTodayProps) {
  const { today, reads } = useToday([family]);
  const counts = today[family];
  const received = countOf(counts, "received");
  const accepted = countOf(counts, "accepted");
  const refused = REFUSED.map((event) => [event, countOf(counts, event)] as const).filter(([, count]) => count > 0);
  const [read] = reads;
  return (
    <Panel title="Webhooks today" description={about}>
      {counts === undefined ? (
        read?.error ? (
          <ErrorState error={read.error} retry={() => void read.refetch()} />
        ) : (
          <LoadingState lines={2} />
        )
      ) : received === 0 ? (
        <EmptyState title="None came today">A provider that reports by itself is heard here.</EmptyState>
      ) : (
        <>
          <Text size="sm">
            {numberText(received)} came, {numberText(accepted)} were accepted
            {received > accepted ? ", the others refused" : ""}
          </Text>
          <Progress.Root size={12} radius="sm" my={8} aria-hidden>
            <Progress.Section value={(100 * accepted) / received} color={SERIES.good} withAria={false} />
            <Progress.Section value={(100 * (received - accepted)) / received} color={SERIES.bad} withAria={false} />
          </Progress.Root>
          {refused.map(([event, count]) => (
            <Text key={event} size="sm" c="dimmed">
              {numberText(count)} {event.replaceAll("_", " ")}
            </Text>
          ))}
        </>
      )}
    </Panel>
  );
}
