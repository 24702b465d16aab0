import { Button, Checkbox, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useChange } from "../../api/index.ts";
import { PopoverForm } from "../../parts/index.ts";

/** An email address or a phone number for somebody. Devices tell of themselves. */
export function AddAddress({ sub }: { readonly sub: string }) {
  const [written, setWritten] = useState("");
  const [verified, setVerified] = useState(true);
  const add = useChange("post", "/api/1/admin/users/{sub}/contact_methods", {
    done: "The address is added",
    refreshes: ["/api/1/admin/users/{sub}"],
  });
  const address = written.trim();
  const submit = (close: () => void) => {
    const body = address.includes("@")
      ? { emails: [{ email: address, verified }] }
      : { phones: [{ phone_number: address, verified, receives_notifications: true }] };
    const onSuccess = () => {
      close();
      setWritten("");
    };
    add.mutate({ path: { sub }, body }, { onSuccess });
  };
  return (
    <PopoverForm
      label="Add an address"
      button={{ size: "xs", leftSection: <IconPlus size={14} aria-hidden /> }}
      onSubmit={submit}
    >
      <TextInput
        label="Email address or phone number"
        description="A number with the code of its country"
        placeholder="ada@example.com, +1 415 555 0132"
        required
        value={written}
        onChange={(event) => setWritten(event.currentTarget.value)}
        data-autofocus
      />
      <Checkbox
        label="They have shown that it is theirs"
        checked={verified}
        onChange={(event) => setVerified(event.currentTarget.checked)}
      />
      <Button type="submit" size="xs" loading={add.isPending} disabled={address === ""}>
        Add it
      </Button>
    </PopoverForm>
  );
}
