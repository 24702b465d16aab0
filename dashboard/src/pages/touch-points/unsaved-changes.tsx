import { Button, Group, Modal, Text } from "@mantine/core";
import { useBlocker } from "@tanstack/react-router";

/** Asks before somebody goes elsewhere with changes that are not saved; the browser asks before its tab is closed. */
export function UnsavedChanges({ areThere }: { readonly areThere: () => boolean }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: areThere,
    enableBeforeUnload: areThere,
    withResolver: true,
  });
  return (
    <Modal opened={status === "blocked"} onClose={() => reset?.()} title="Your changes are not saved">
      <Text size="sm">Leave this page, and they are lost.</Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={() => proceed?.()}>
          Leave without saving
        </Button>
        <Button onClick={() => reset?.()} data-autofocus>
          Stay here
        </Button>
      </Group>
    </Modal>
  );
}
