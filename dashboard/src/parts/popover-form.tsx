import { Button, type ButtonProps, Popover, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";

interface PopoverFormProps {
  /** What the button that opens it says, and how it looks. */
  readonly label: string;
  readonly button?: ButtonProps;
  readonly onSubmit: (close: () => void) => void;
  /** The fields, and the button that submits. */
  readonly children: ReactNode;
}

/** A button that opens a small form beside it. */
export function PopoverForm({ label, button, onSubmit, children }: PopoverFormProps) {
  const [isOpen, popover] = useDisclosure(false);
  return (
    <Popover opened={isOpen} onChange={popover.close} width={320} position="bottom-end" withArrow trapFocus shadow="md">
      <Popover.Target>
        <Button {...button} onClick={popover.toggle}>
          {label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit(popover.close);
          }}
        >
          <Stack gap="sm">{children}</Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
