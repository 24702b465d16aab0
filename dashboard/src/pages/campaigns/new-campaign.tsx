import { Alert, Button, JsonInput, Modal, Radio, Select, Stack, Text } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { IconBroadcast } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Answer, carillon, useChange } from "../../api/index.ts";
import {
  CHANNEL_NAMES,
  ChannelMark,
  type ChannelName,
  ConfirmButton,
  counted,
  LoadingState,
  numberText,
  objectOf,
} from "../../parts/index.ts";
import { MessageLook } from "../../parts/message-look.tsx";

type Point = Answer<"post", "/api/1/admin/touch_points/search">["items"][number];

/** Each person has their own of these, unless somebody gives one for all. */
const OWN = ["name", "url", "unsubscribe_url"];
const BEGUN = { done: "The campaign begins", refreshes: ["/api/1/admin/campaigns"] };

/** A button that opens the form of a campaign. */
export function NewCampaign() {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button leftSection={<IconBroadcast size={16} aria-hidden />} onClick={dialog.open}>
        New campaign
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title="Tell everybody" size="lg">
        <CampaignForm onBegun={dialog.close} />
      </Modal>
    </>
  );
}

function CampaignForm({ onBegun }: { readonly onBegun: () => void }) {
  const [point, setPoint] = useState<Point>();
  const [channel, setChannel] = useState<ChannelName>();
  const [text, setText] = useState("{}");
  const usable = CHANNEL_NAMES.filter((each) => point && point.messages[each].length > 0);
  const parameters = objectOf(text);
  const choose = (chosen: Point | undefined) => {
    setPoint(chosen);
    setChannel(CHANNEL_NAMES.find((each) => chosen && chosen.messages[each].length > 0));
    const common = Object.entries(chosen?.example ?? {}).filter(([name]) => !OWN.includes(name));
    setText(JSON.stringify(Object.fromEntries(common), undefined, 2));
  };
  return (
    <Stack gap="md">
      <PointSelect value={point} onChange={choose} />
      {point && (
        <>
          <Radio.Group
            label="Channel"
            description={
              channel === undefined
                ? "The touch point has no message yet"
                : channel === "sms"
                  ? "Texts go to those alone who get reminders by text"
                  : undefined
            }
            value={channel ?? null}
            onChange={(value) => setChannel(value as ChannelName)}
          >
            <Stack gap="xs" mt={6}>
              {usable.map((each) => (
                <Radio key={each} value={each} label={<ChannelMark channel={each} />} />
              ))}
            </Stack>
          </Radio.Group>
          <JsonInput
            label="Parameters"
            description={`The same for everybody. ${OWN.join(", ")} are each person's own, unless you give one.`}
            autosize
            minRows={2}
            maxRows={10}
            value={text}
            onChange={setText}
            error={parameters ? undefined : "This is not a JSON object"}
          />
          {channel !== undefined && parameters && (
            <Whom
              wish={{ touch_point_event_slug: point.event_slug, event_parameters: parameters }}
              channel={channel}
              onBegun={onBegun}
            />
          )}
        </>
      )}
    </Stack>
  );
}

interface PointSelectProps {
  readonly value: Point | undefined;
  readonly onChange: (point: Point | undefined) => void;
}

function PointSelect({ value, onChange }: PointSelectProps) {
  const [text, setText] = useState("");
  const [typed] = useDebouncedValue(text.trim(), 250);
  // What was chosen stands in the field: it is no search.
  const contains = value === undefined ? typed : "";
  const points = useQuery({
    queryKey: ["/api/1/admin/touch_points/search", contains],
    queryFn: ({ signal }) =>
      carillon.post("/api/1/admin/touch_points/search", { body: { contains, limit: 20 }, signal }),
    placeholderData: keepPreviousData,
  });
  const found = points.data?.items ?? [];
  const options = value && !found.some(({ uid }) => uid === value.uid) ? [value, ...found] : found;
  return (
    <Select
      label="Touch point"
      description="The event, with words for each channel"
      placeholder="Type to search"
      searchable
      clearable
      data={options.map(({ uid, event_slug }) => ({ value: uid, label: event_slug }))}
      filter={({ options: all }) => all}
      value={value?.uid ?? null}
      onChange={(uid) => onChange(options.find((each) => each.uid === uid))}
      searchValue={text}
      onSearchChange={setText}
      nothingFoundMessage={<Text size="sm">No touch point has such a name</Text>}
      data-autofocus
    />
  );
}

interface WhomProps {
  readonly wish: { readonly touch_point_event_slug: string; readonly event_parameters: Record<string, unknown> };
  readonly channel: ChannelName;
  readonly onBegun: () => void;
}

/** How many people it reaches and what they read, and the button that begins it. */
function Whom({ wish, channel, onBegun }: WhomProps) {
  const own = JSON.stringify({ ...wish, channel });
  // As text: an object is another one at every drawing, and would never come to rest.
  const [body] = useDebouncedValue(own, 300);
  const preview = useQuery({
    queryKey: ["campaign preview", body],
    queryFn: ({ signal }) => carillon.post("/api/1/admin/campaigns/preview", { body: JSON.parse(body), signal }),
  });
  const options = { ...BEGUN, onDone: onBegun };
  const begins = {
    push: useChange("post", "/api/1/admin/notifs/marketing_push", options),
    sms: useChange("post", "/api/1/admin/sms/marketing_sms", options),
    email: useChange("post", "/api/1/admin/email/announcement", options),
  };
  const begin = begins[channel];
  if (preview.error)
    return (
      <Alert color="var(--tone-bad)" title="It cannot begin like this">
        {preview.error.message}
      </Alert>
    );
  if (!preview.data) return <LoadingState lines={4} />;
  const { people, everybody, messages } = preview.data;
  const some = counted(people, "person", "people");
  return (
    <Stack gap="sm">
      <Text size="sm" role="status">
        It reaches <b>{some}</b> of {numberText(everybody)}.
        {messages.length > 1 && ` Each gets one of ${messages.length} messages, such as this:`}
      </Text>
      {messages[0] && <MessageLook rendered={messages[0]} />}
      <ConfirmButton
        size="sm"
        variant="filled"
        disabled={people === 0 || own !== body}
        loading={begin.isPending}
        question={`${some} will get it, as fast as the channel takes them. Whoever has it keeps it, also if you stop the campaign.`}
        confirm="Tell them now"
        onConfirm={() => begin.mutate({ body: wish })}
      >
        Tell {some}
      </ConfirmButton>
    </Stack>
  );
}
