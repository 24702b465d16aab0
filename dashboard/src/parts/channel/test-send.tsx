import { Button, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconSend } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { MessageStory } from "./message-story.tsx";

/** A button that opens the form of a test, and below it what becomes of what was sent. */
export function TestSendButton({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button leftSection={<IconSend size={16} aria-hidden />} onClick={dialog.open}>
        {title}
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={title} size="lg">
        {children}
      </Modal>
    </>
  );
}

export function WhatHappens({ uid }: { readonly uid: string | undefined }) {
  if (uid === undefined) return null;
  return (
    <>
      <Text size="sm" fw={600}>
        What happens
      </Text>
      <MessageStory key={uid} uid={uid} />
    </>
  );
}
