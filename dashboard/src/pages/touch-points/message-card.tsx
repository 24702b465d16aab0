import { Grid, Group, NumberInput, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { type ChannelName, ConfirmButton } from "../../parts/index.ts";
import type { Messages, Parameters } from "./draft.ts";
import { EmailFields } from "./email-fields.tsx";
import styles from "./message-card.module.css";
import { MessagePreview } from "./message-preview.tsx";

export type Message = Messages[ChannelName][number];

interface MessageCardProps {
  readonly channel: ChannelName;
  readonly message: Message;
  readonly number: number;
  readonly parameters: Parameters;
  readonly onChange: (message: Message) => void;
  readonly onRemove: () => void;
}

/** One message: its words on the left, how people see them on the right. */
export function MessageCard({ channel, message, number, parameters, onChange, onRemove }: MessageCardProps) {
  return (
    <section className={styles.card} aria-label={`Message ${number}`}>
      <Group justify="space-between" mb="sm" gap="sm">
        <Text fw={600} size="sm">
          Message {number}
        </Text>
        <ConfirmButton
          label={`Remove message ${number}`}
          question="The message is gone when you save."
          leftSection={<IconTrash size={14} aria-hidden />}
          onConfirm={onRemove}
        >
          Remove
        </ConfirmButton>
      </Group>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Stack gap="sm">
            <Fields message={message} onChange={onChange} />
            <NumberInput
              label="Priority"
              description="Lower ones come first"
              value={message.priority}
              onChange={(value) => onChange({ ...message, priority: Math.round(Number(value)) || 0 })}
              maw={180}
            />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <MessagePreview channel={channel} message={message} parameters={parameters} />
        </Grid.Col>
      </Grid>
    </section>
  );
}

function Fields({ message, onChange }: Pick<MessageCardProps, "message" | "onChange">) {
  if ("template" in message) return <EmailFields message={message} onChange={onChange} />;
  return (
    <>
      {"title_format" in message && (
        <TextInput
          label="Title"
          value={message.title_format}
          onChange={(event) => onChange({ ...message, title_format: event.currentTarget.value })}
        />
      )}
      <Textarea
        label={"title_format" in message ? "Body" : "Text"}
        autosize
        minRows={2}
        value={message.body_format}
        onChange={(event) => onChange({ ...message, body_format: event.currentTarget.value })}
      />
      {"channel_id" in message && (
        <TextInput
          label="Android channel"
          description="Which of the app's channels it belongs to"
          value={message.channel_id}
          onChange={(event) => onChange({ ...message, channel_id: event.currentTarget.value })}
        />
      )}
    </>
  );
}
