import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useRead } from "../../api/index.ts";
import { DataTable, EmptyState, Panel, StateBadge, Time } from "../index.ts";
import { MessageStory } from "./message-story.tsx";
import type { ChannelPlan } from "./plan.ts";

const UID = /^crl_[a-z]+_[\w-]{10,}$/;

/** Messages by the address they went to, or one by its uid, each with its story. */
export function FindMessages({ plan, address }: { readonly plan: ChannelPlan; readonly address: string }) {
  const [text, setText] = useState("");
  const [wanted] = useDebouncedValue(text.trim(), 350);
  const isUid = UID.test(wanted);
  const read = useRead(
    "/api/1/admin/messages",
    { query: { address: wanted } },
    { enabled: wanted !== "" && !isUid, every: 5 },
  );
  return (
    <Panel title={`Find ${plan.messages}`} description="What happened to each, step by step, for as long as it is kept">
      <TextInput
        label={`${address}, or the uid of a ${plan.message}`}
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        mb="md"
        maw={520}
      />
      {wanted === "" ? (
        <EmptyState title="Whose messages?">
          The address is compared as a whole; none is stored in the story.
        </EmptyState>
      ) : isUid ? (
        <MessageStory key={wanted} uid={wanted} />
      ) : (
        <DataTable
          caption={`Messages to ${wanted}`}
          rows={read.data?.items}
          read={read}
          keyOf={({ uid }) => uid}
          empty={<EmptyState title="None is known">Steps of messages are stored about once a minute.</EmptyState>}
          columns={[
            { title: "Message", cell: ({ uid }) => uid },
            { title: "Last step", cell: ({ last_step }) => <StateBadge state={last_step} /> },
            { title: "When", align: "right", cell: ({ last_at }) => <Time at={last_at} /> },
            { title: "First step", align: "right", cell: ({ first_at }) => <Time at={first_at} as="moment" /> },
          ]}
          detail={({ uid }) => <MessageStory uid={uid} />}
        />
      )}
    </Panel>
  );
}
