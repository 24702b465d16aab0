import { Button, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";

interface AddSuppressionProps {
  readonly label: string;
  readonly placeholder: string;
  readonly isBusy: boolean;
  /** With a field for a note. */
  readonly withNote?: boolean;
  readonly add: (address: string, note: string | undefined, done: () => void) => void;
}

/** Holds an address back by hand. */
export function AddSuppression({ label, placeholder, isBusy, withNote = false, add }: AddSuppressionProps) {
  const [isOpen, popover] = useDisclosure(false);
  const [address, setAddress] = useState("");
  const [note, setNote] = useState("");
  const submit = () =>
    add(address.trim(), note.trim() || undefined, () => {
      popover.close();
      setAddress("");
      setNote("");
    });
  return (
    <Popover opened={isOpen} onChange={popover.close} width={300} position="bottom-end" withArrow trapFocus shadow="md">
      <Popover.Target>
        <Button size="xs" leftSection={<IconPlus size={14} aria-hidden />} onClick={popover.toggle}>
          Suppress
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          <Stack gap="sm">
            <TextInput
              label={label}
              placeholder={placeholder}
              required
              value={address}
              onChange={(event) => setAddress(event.currentTarget.value)}
              data-autofocus
            />
            {withNote && (
              <TextInput label="Note" value={note} onChange={(event) => setNote(event.currentTarget.value)} />
            )}
            <Text size="xs" c="dimmed">
              Nothing at all is sent there until somebody lifts it.
            </Text>
            <Button type="submit" size="xs" loading={isBusy} disabled={address.trim() === ""}>
              Suppress it
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
