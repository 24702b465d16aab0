import { Button, Select, TextInput } from "@mantine/core";
import { IconUserPlus } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/index.ts";
import { PopoverForm } from "../../parts/index.ts";

const ZONES = Intl.supportedValuesOf("timeZone");

/** Makes a person by hand; ordinarily the application does it. */
export function AddPerson() {
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
    <PopoverForm
      label="Add a person"
      button={{ leftSection: <IconUserPlus size={16} aria-hidden /> }}
      onSubmit={() => create.mutate({ body })}
    >
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
    </PopoverForm>
  );
}
