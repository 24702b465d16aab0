import {
  Alert,
  Anchor,
  Button,
  Checkbox,
  Group,
  JsonInput,
  Modal,
  MultiSelect,
  Select,
  Stack,
  Text,
} from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { IconSend } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useChange, useRead } from "../../api/index.ts";
import { CHANNEL_NAMES, ChannelMark, type ChannelName, nameOf, objectOf, StateBadge } from "../../parts/index.ts";
import type { Point } from "./draft.ts";

interface SendProps {
  readonly slug: string;
  readonly point: Point;
  readonly isChanged: boolean;
}

/** Tells one person about the event, for real, and leads to what becomes of it. */
export function SendButton(props: SendProps) {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button variant="default" leftSection={<IconSend size={16} aria-hidden />} onClick={dialog.open}>
        Send to a person
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={`Send ${props.slug} to a person`} size="lg">
        <SendForm {...props} />
      </Modal>
    </>
  );
}

const LINK = /url|link/i;

/** What ends a subscription is a credential: it leads there, and its code cannot be guessed. */
const linkFor = (parameter: string) =>
  /unsubscribe/i.test(parameter)
    ? { parameter, page_identifier: "unsubscribe", code_style: "long" as const }
    : { parameter };

function SendForm({ slug, point, isChanged }: SendProps) {
  const names = Object.keys(point.example);
  const usable = CHANNEL_NAMES.filter((channel) => point.messages[channel].length > 0);
  const [sub, setSub] = useState<string | null>(null);
  const [channels, setChannels] = useState<readonly ChannelName[]>(usable.slice(0, 1));
  const [links, setLinks] = useState<readonly string[]>(() => names.filter((name) => LINK.test(name)));
  const [text, setText] = useState(() =>
    JSON.stringify(
      Object.fromEntries(Object.entries(point.example).filter(([name]) => !LINK.test(name))),
      undefined,
      2,
    ),
  );
  const parameters = objectOf(text);
  const send = useChange("post", "/api/1/admin/touches", { done: "Queued", refreshes: ["/api/1/admin/touch"] });
  return (
    <Stack gap="md">
      {isChanged && (
        <Alert color="var(--tone-warn)" title="Your changes are not saved">
          People get the words that are saved.
        </Alert>
      )}
      <PersonSelect value={sub} onChange={setSub} />
      <Checkbox.Group
        label="Channels"
        value={[...channels]}
        onChange={(value) => setChannels(value as ChannelName[])}
        description={usable.length === 0 ? "The touch point has no message yet" : undefined}
      >
        <Group gap="lg" mt={6}>
          {usable.map((channel) => (
            <Checkbox key={channel} value={channel} label={<ChannelMark channel={channel} />} />
          ))}
        </Group>
      </Checkbox.Group>
      {names.length > 0 && (
        <MultiSelect
          label="Parameters that become links"
          description="Each gets a link of its own, whose clicks are counted"
          data={names}
          value={[...links]}
          onChange={setLinks}
        />
      )}
      <JsonInput
        label="Parameters"
        autosize
        minRows={3}
        maxRows={10}
        value={text}
        onChange={setText}
        error={parameters ? undefined : "This is not a JSON object"}
      />
      <Button
        disabled={sub === null || channels.length === 0 || !parameters}
        loading={send.isPending}
        onClick={() =>
          send.mutate({
            body: {
              user_sub: sub!,
              touch_point_event_slug: slug,
              channels: [...channels],
              event_parameters: Object.fromEntries(
                Object.entries(parameters!).filter(([name]) => !links.includes(name)),
              ),
              links: links.map(linkFor),
            },
          })
        }
      >
        Send it now
      </Button>
      {send.data && (
        <Stack gap="xs" role="status">
          {send.data.touches.map(({ uid, channel }) => (
            <Group key={uid} gap="sm">
              <ChannelMark channel={channel} />
              <StateBadge state="queued" />
              <Anchor component={Link} to={`/touches/${uid}`} size="sm">
                Watch it go
              </Anchor>
            </Group>
          ))}
        </Stack>
      )}
    </Stack>
  );
}

interface PersonSelectProps {
  readonly value: string | null;
  readonly onChange: (sub: string | null) => void;
}

function PersonSelect({ value, onChange }: PersonSelectProps) {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text.trim(), 250);
  // What was chosen stands in the field: it is no search.
  const people = useRead("/api/1/admin/people", {
    query: { limit: 10, ...(search === "" || value !== null ? {} : { search }) },
  });
  const options = (people.data?.items ?? []).map(({ sub, emails, phones, ...named }) => ({
    value: sub,
    label: [nameOf(named), emails[0] ?? phones[0] ?? sub].filter(Boolean).join(", "),
  }));
  return (
    <Select
      label="Person"
      description="By name, email address, phone number or sub"
      placeholder="Type to search"
      searchable
      clearable
      data={options}
      filter={({ options: all }) => all}
      value={value}
      onChange={onChange}
      searchValue={text}
      onSearchChange={setText}
      nothingFoundMessage={<Text size="sm">Nobody fits</Text>}
      data-autofocus
    />
  );
}
