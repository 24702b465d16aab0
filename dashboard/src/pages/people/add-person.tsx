import { Button, Popover, Select, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconUserPlus } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/index.ts";

const ZONES = Intl.supportedValuesOf("timeZone");

/** Makes a person by hand; ordinarily the application does it. */
export function AddPerson() {
  const [isOpen, popover] = useDisclosure(false);
  const [fields, setFields] = useState({ given: "", family: "", sub: "" });
  const [timezone, setTimezone] = useState<string | null>(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const navigate = useNavigate();
  const create = useChange("post", "/api/1/admin/users", {
    done: "The person is made: now tell how to reach them",
    refreshes: ["/api/1/admin/people"],
    onDone: ({ sub }) => void navigate({ to: `/people/${encodeURIComponent(sub)}` }),
  });
  const field = (name: keyof typeof fields) => ({
    value: fields[name],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => {
      const { value } = event.currentTarget;
      setFields((now) => ({ ...now, [name]: value }));
    },
  });
  const body = {
    ...(fields.given.trim() === "" ? {} : { given_name: fields.given.trim() }),
    ...(fields.family.trim() === "" ? {} : { family_name: fields.family.trim() }),
    ...(fields.sub.trim() === "" ? {} : { sub: fields.sub.trim() }),
    ...(timezone === null ? {} : { timezone }),
  };
  return (
    <Popover opened={isOpen} onChange={popover.close} width={320} position="bottom-end" withArrow trapFocus shadow="md">
      <Popover.Target>
        <Button leftSection={<IconUserPlus size={16} aria-hidden />} onClick={popover.toggle}>
          Add a person
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate({ body });
          }}
        >
          <Stack gap="sm">
            <TextInput label="Given name" {...field("given")} data-autofocus />
            <TextInput label="Family name" {...field("family")} />
            <Select
              label="Timezone"
              description="Reminders come at hours of this zone"
              searchable
              value={timezone}
              onChange={setTimezone}
              data={ZONES}
              limit={50}
              nothingFoundMessage="No such timezone"
              comboboxProps={{ withinPortal: false }}
            />
            <TextInput label="Sub" description="What your application calls them; made up if empty" {...field("sub")} />
            <Button type="submit" loading={create.isPending}>
              Add them
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
