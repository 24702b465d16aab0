import { Badge, Button, JsonInput, Stack, Tabs } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { CHANNEL_NAMES, ChannelMark, type ChannelName, EmptyState, objectOf, Panel } from "../../parts/index.ts";
import { type Messages, newMessageUid, type Parameters } from "./draft.ts";
import { MessageCard } from "./message-card.tsx";

interface MessagesPanelProps {
  readonly messages: Messages;
  /** Parameters made of the schema's examples. */
  readonly example: Parameters;
  readonly onChange: (messages: Messages) => void;
}

const NEW: { readonly [C in ChannelName]: (priority: number) => Messages[C][number] } = {
  sms: (priority) => ({ priority, uid: newMessageUid("tpsms"), body_format: "Hello {name}", body_parameters: [] }),
  push: (priority) => ({
    priority,
    uid: newMessageUid("tppush"),
    title_format: "Hello {name}",
    title_parameters: [],
    body_format: "There is news for you",
    body_parameters: [],
    channel_id: "default",
  }),
  email: (priority) => ({
    priority,
    uid: newMessageUid("tpem"),
    subject_format: "News for {name}",
    subject_parameters: [],
    template: "announcement",
    template_parameters_fixed: {},
    template_parameters_substituted: [],
  }),
};

/** The words of each channel, with what they look like. */
export function MessagesPanel({ messages, example, onChange }: MessagesPanelProps) {
  const [channel, setChannel] = useState<ChannelName>(
    () => CHANNEL_NAMES.find((name) => messages[name].length > 0) ?? "push",
  );
  const [own, setOwn] = useState<string>();
  const text = own ?? JSON.stringify(example, undefined, 2);
  const parameters = objectOf(text) ?? example;
  const list = messages[channel];
  const write = (next: readonly unknown[]) => onChange({ ...messages, [channel]: next });
  return (
    <Panel title="Messages" description="Words in braces are parameters: {name}. Two braces make one.">
      <Stack gap="md">
        <JsonInput
          label="Preview with"
          description="Nothing of this is saved"
          value={text}
          onChange={setOwn}
          error={objectOf(text) ? undefined : "This is not a JSON object"}
          autosize
          minRows={2}
          maxRows={8}
        />
        <Tabs value={channel} onChange={(value) => setChannel(value as ChannelName)} keepMounted={false}>
          <Tabs.List mb="md">
            {CHANNEL_NAMES.map((name) => (
              <Tabs.Tab
                key={name}
                value={name}
                rightSection={
                  <Badge size="sm" variant="default" circle>
                    {messages[name].length}
                  </Badge>
                }
              >
                <ChannelMark channel={name} />
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value={channel}>
            <Stack gap="md">
              {list.length === 0 && (
                <EmptyState title="No words for this channel">
                  Touches of this event cannot be sent on it until there is a message.
                </EmptyState>
              )}
              {list.map((message, at) => (
                <MessageCard
                  key={message.uid}
                  channel={channel}
                  message={message}
                  number={at + 1}
                  parameters={parameters}
                  onChange={(next) => write(list.map((each) => (each.uid === message.uid ? next : each)))}
                  onRemove={() => write(list.filter(({ uid }) => uid !== message.uid))}
                />
              ))}
              <Button
                variant="default"
                w="fit-content"
                leftSection={<IconPlus size={16} aria-hidden />}
                onClick={() => write([...list, NEW[channel](Math.max(0, ...list.map(({ priority }) => priority)) + 1)])}
              >
                Add a message
              </Button>
            </Stack>
          </Tabs.Panel>
        </Tabs>
      </Stack>
    </Panel>
  );
}
