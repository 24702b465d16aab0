import { Drawer, Stack, Text } from "@mantine/core";
import { ErrorState, JsonView, LoadingState } from "../parts/index.ts";
import { LinkedText } from "./linked-text.tsx";
import { MessageActions } from "./message-actions.tsx";
import { MessageStory } from "./message-story.tsx";
import { useMessage } from "./messages.ts";

interface MessageSheetProps {
  /** The message to show; undefined: none. */
  readonly id: string | undefined;
  readonly onClose: () => void;
}

/** A push or a text from behind: what the provider was told, what became of it, and what may happen next. */
export function MessageSheet({ id, onClose }: MessageSheetProps) {
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="md" title="Behind the message">
      {id !== undefined && <Inside id={id} onClose={onClose} />}
    </Drawer>
  );
}

function Inside({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const read = useMessage(id);
  if (read.error) return <ErrorState error={read.error} />;
  if (read.data?.id !== id) return <LoadingState />;
  const message = read.data;
  return (
    <Stack gap="md">
      <div>
        {message.subject !== null && <Text fw={600}>{message.subject}</Text>}
        <Text style={{ whiteSpace: "pre-wrap" }}>
          <LinkedText text={message.text} />
        </Text>
        <Text size="xs" c="dimmed" mt={4}>
          {message.direction === "in" ? `from ${message.from}` : `to ${message.to}`}
        </Text>
      </div>
      <MessageActions message={message} onDeleted={onClose} />
      <MessageStory message={message} />
      {Object.keys(message.fields).length > 0 && <JsonView value={message.fields} />}
    </Stack>
  );
}
