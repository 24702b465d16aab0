import { Button, type ButtonProps, Group, Popover, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";

interface ConfirmButtonProps extends Pick<ButtonProps, "size" | "variant" | "leftSection" | "loading" | "disabled"> {
  readonly children: ReactNode;
  /** What will happen, as a question. */
  readonly question: ReactNode;
  /** The word on the button that does it; default: that of the button itself. */
  readonly confirm?: string;
  readonly onConfirm: () => void;
  /** For readers of screens, where the button's own word is not enough. */
  readonly label?: string;
}

/** A button for what cannot be taken back: it asks once, right where it stands. */
export function ConfirmButton({ children, question, confirm, onConfirm, label, ...rest }: ConfirmButtonProps) {
  const [isOpen, popover] = useDisclosure(false);
  return (
    <Popover opened={isOpen} onChange={popover.close} width={280} position="bottom-end" withArrow trapFocus shadow="md">
      <Popover.Target>
        <Button size="xs" variant="default" {...rest} onClick={popover.toggle} aria-label={label}>
          {children}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Text size="sm" mb="sm">
          {question}
        </Text>
        <Group gap="xs" justify="flex-end">
          <Button size="xs" variant="default" onClick={popover.close}>
            Cancel
          </Button>
          <Button
            size="xs"
            color="red.8"
            onClick={() => {
              popover.close();
              onConfirm();
            }}
          >
            {confirm ?? children}
          </Button>
        </Group>
      </Popover.Dropdown>
    </Popover>
  );
}
