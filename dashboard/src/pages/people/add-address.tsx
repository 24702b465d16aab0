import { Button, Checkbox, Popover, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useChange } from "../../api/index.ts";

/** An email address or a phone number for somebody. Devices tell of themselves. */
export function AddAddress({ sub }: { readonly sub: string }) {
  const [isOpen, popover] = useDisclosure(false);
  const [written, setWritten] = useState("");
  const [verified, setVerified] = useState(true);
  const add = useChange("post", "/api/1/admin/users/{sub}/contact_methods", {
    done: "The address is added",
    refreshes: ["/api/1/admin/users/{sub}"],
    onDone: () => {
      popover.close();
      setWritten("");
    },
  });
  const address = written.trim();
  const submit = () =>
    add.mutate({
      path: { sub },
      body: address.includes("@")
        ? { emails: [{ email: address, verified }] }
        : { phones: [{ phone_number: address, verified, receives_notifications: true }] },
    });
  return (
    <Popover opened={isOpen} onChange={popover.close} width={320} position="bottom-end" withArrow trapFocus shadow="md">
      <Popover.Target>
        <Button size="xs" leftSection={<IconPlus size={14} aria-hidden />} onClick={popover.toggle}>
          Add an address
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
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
