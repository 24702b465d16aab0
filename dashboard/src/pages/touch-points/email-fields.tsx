import { ActionIcon, Button, Group, JsonInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useState } from "react";
import { useRead } from "../../api/index.ts";
import { objectOf } from "../../parts/index.ts";
import type { Messages } from "./draft.ts";

type Mail = Messages["email"][number];
type Part = Mail["template_parameters_substituted"][number];

interface EmailFieldsProps {
  readonly message: Mail;
  readonly onChange: (message: Mail) => void;
}

/** A mail: its subject, its template, and what the template is filled with. */
export function EmailFields({ message, onChange }: EmailFieldsProps) {
  const templates = useRead("/api/1/admin/email/templates");
  const names = templates.data?.templates.map(({ slug }) => slug) ?? [];
  const parts = message.template_parameters_substituted;
  const write = (next: readonly Part[]) => onChange({ ...message, template_parameters_substituted: [...next] });
  return (
    <>
      <TextInput
        label="Subject"
        value={message.subject_format}
        onChange={(event) => onChange({ ...message, subject_format: event.currentTarget.value })}
      />
      <Select
        label="Template"
        searchable
        allowDeselect={false}
        data={names.includes(message.template) ? names : [message.template, ...names]}
        value={message.template}
        onChange={(value) => onChange({ ...message, template: value ?? message.template })}
      />
      <FixedParameters message={message} onChange={onChange} />
      <Stack gap="xs">
        <Text size="sm" fw={500}>
          What is written into them
        </Text>
        {parts.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two places may have the same path while somebody types
          <Group key={at} gap="xs" align="flex-start" wrap="nowrap">
            <TextInput
              aria-label={`Place ${at + 1}`}
              placeholder="headline"
              value={part.key.join(".")}
              w="38%"
              onChange={(event) => {
                const key = event.currentTarget.value
                  .split(".")
                  .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
                write(parts.map((each, index) => (index === at ? { ...each, key } : each)));
              }}
            />
            <Textarea
              aria-label={`Words for place ${at + 1}`}
              placeholder="Good morning {name}"
              autosize
              flex={1}
              value={part.format}
              onChange={(event) => {
                const format = event.currentTarget.value;
                write(parts.map((each, index) => (index === at ? { ...each, format } : each)));
              }}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              mt={4}
              aria-label={`Leave out place ${at + 1}`}
              onClick={() => write(parts.filter((_, index) => index !== at))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
        ))}
        <Button
          size="xs"
          variant="default"
          w="fit-content"
          leftSection={<IconPlus size={14} aria-hidden />}
          onClick={() => write([...parts, { key: ["headline"], format: "{name}", parameters: [] }])}
        >
          Add a place
        </Button>
      </Stack>
    </>
  );
}

/** While the text is no object, what it was before holds. */
function FixedParameters({ message, onChange }: EmailFieldsProps) {
  const [text, setText] = useState(() => JSON.stringify(message.template_parameters_fixed, undefined, 2));
  return (
    <JsonInput
      label="Parameters of the template"
      description="The same for everybody"
      autosize
      minRows={2}
      maxRows={10}
      value={text}
      error={objectOf(text) ? undefined : "This is not a JSON object"}
      onChange={(next) => {
        setText(next);
        const parsed = objectOf(next);
        if (parsed) onChange({ ...message, template_parameters_fixed: parsed });
      }}
    />
  );
}
