import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { CarillonApiError, carillon } from "../../api/index.ts";
import { type ChannelName, LoadingState } from "../../parts/index.ts";
import { MessageLook } from "../../parts/message-look.tsx";
import { declared, type Parameters } from "./draft.ts";
import type { Message } from "./message-card.tsx";

interface MessagePreviewProps {
  readonly channel: ChannelName;
  readonly message: Message;
  readonly parameters: Parameters;
}

/** What people will see, as the server makes it; a moment after the last key. */
export function MessagePreview({ channel, message, parameters }: MessagePreviewProps) {
  const own = declared({ sms: [], push: [], email: [], [channel]: [message] })[channel][0]!;
  // As text: an object is another one at every drawing, and would never come to rest.
  const [body] = useDebouncedValue(JSON.stringify({ channel, message: own, event_parameters: parameters }), 300);
  const preview = useQuery({
    queryKey: ["touch point preview", body],
    queryFn: ({ signal }) => carillon.post("/api/1/admin/touch_points/preview", { body: JSON.parse(body), signal }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const fault = preview.error instanceof CarillonApiError ? preview.error.message : preview.error?.message;
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        Preview
      </Text>
      {fault !== undefined && (
        <Text size="sm" c="var(--tone-bad)" role="status">
          {fault}
        </Text>
      )}
      {preview.data ? <MessageLook rendered={preview.data} /> : fault === undefined && <LoadingState lines={3} />}
    </Stack>
  );
}
