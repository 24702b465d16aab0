import { Button, Text, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { PopoverForm } from "../popover-form.tsx";

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
  const [address, setAddress] = useState("");
  const [note, setNote] = useState("");
  const submit = (close: () => void) =>
    add(address.trim(), note.trim() || undefined, () => {
      close();
      setAddress("");
      setNote("");
    });
  return (
    <PopoverForm
      label="Suppress"
      button={{ size: "xs", leftSection: <IconPlus size={14} aria-hidden /> }}
      onSubmit={submit}
    >
      <TextInput
        label={label}
        placeholder={placeholder}
        required
        value={address}
        onChange={(event) => setAddress(event.currentTarget.value)}
        data-autofocus
      />
      {withNote && <TextInput label="Note" value={note} onChange={(event) => setNote(event.currentTarget.value)} />}
      <Text size="xs" c="dimmed">
        Nothing at all is sent there until somebody lifts it.
      </Text>
      <Button type="submit" size="xs" loading={isBusy} disabled={address.trim() === ""}>
        Suppress it
      </Button>
    </PopoverForm>
  );
}
