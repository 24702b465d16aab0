import { Button, Group, Menu } from "@mantine/core";
import {
  IconBan,
  IconCheck,
  IconChevronDown,
  IconClock,
  IconMailOff,
  IconMoodAngry,
  IconRepeat,
  IconTrash,
} from "@tabler/icons-react";
import { useChange } from "../api/index.ts";
import { durationText } from "../parts/index.ts";
import { type Action, type Message, useAction } from "./messages.ts";

interface Offer {
  readonly label: string;
  readonly icon: typeof IconCheck;
  readonly action: Action;
  /** What is said when it was done. */
  readonly done: string;
}

const DELIVER: Offer = { label: "Deliver", icon: IconCheck, action: { action: "deliver" }, done: "Delivered" };
const FAIL: Offer = { label: "Fail", icon: IconBan, action: { action: "fail" }, done: "Failed" };
const RESEND: Offer = {
  label: "Report again",
  icon: IconRepeat,
  action: { action: "resend" },
  done: "The last report was sent again",
};
const UNSUBSCRIBE: Offer = {
  label: "Unsubscribe",
  icon: IconMailOff,
  action: { action: "unsubscribe" },
  done: "Unsubscribed by the one-click link",
};

/** What may happen to messages of each provider. */
const OFFERS: Readonly<Record<Message["provider"], readonly Offer[]>> = {
  expo: [DELIVER, FAIL],
  twilio: [DELIVER, FAIL, RESEND],
  ses: [
    DELIVER,
    { label: "Bounce", icon: IconBan, action: { action: "bounce" }, done: "It bounced for good" },
    {
      label: "Soft bounce",
      icon: IconClock,
      action: { action: "bounce", bounce_type: "Transient", bounce_sub_type: "MailboxFull" },
      done: "It bounced: the mailbox is full",
    },
    { label: "Complain", icon: IconMoodAngry, action: { action: "complain" }, done: "The reader complained" },
    UNSUBSCRIBE,
    RESEND,
  ],
  smtp: [UNSUBSCRIBE],
};

const LATER = [10, 60, 600, 3_600];

interface MessageActionsProps {
  readonly message: Message;
  readonly onDeleted: () => void;
}

export function MessageActions({ message, onDeleted }: MessageActionsProps) {
  const { id } = message;
  const offers = message.direction === "out" ? OFFERS[message.provider] : [];
  const remove = useChange("delete", "/api/1/sandbox/messages/{id}", {
    done: "Taken out of the inbox",
    refreshes: ["/api/1/sandbox/messages"],
    onDone: onDeleted,
  });
  return (
    <Group gap="xs" role="group" aria-label="What may happen to it">
      {offers.map((offer) => (
        <OfferButton key={offer.label} id={id} offer={offer} />
      ))}
      {offers.includes(DELIVER) && <DeliverLate id={id} />}
      <Button
        size="xs"
        variant="default"
        leftSection={<IconTrash size={14} aria-hidden />}
        loading={remove.isPending}
        onClick={() => remove.mutate({ path: { id } })}
      >
        Delete
      </Button>
    </Group>
  );
}

function OfferButton({
  id,
  offer: { label, icon: Icon, action, done },
}: {
  readonly id: string;
  readonly offer: Offer;
}) {
  const act = useAction((answered) => (answered === null ? done : `${done}; Carillon answered ${answered}`));
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Icon size={14} aria-hidden />}
      loading={act.isPending}
      onClick={() => act.mutate({ path: { id }, body: action })}
    >
      {label}
    </Button>
  );
}

function DeliverLate({ id }: { readonly id: string }) {
  const act = useAction(() => "It will be delivered late");
  return (
    <Menu position="bottom-start">
      <Menu.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconClock size={14} aria-hidden />}
          rightSection={<IconChevronDown size={14} aria-hidden />}
        >
          Deliver late
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {LATER.map((seconds) => (
          <Menu.Item
            key={seconds}
            onClick={() => act.mutate({ path: { id }, body: { action: "deliver", after_seconds: seconds } })}
          >
            in {durationText(seconds)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
