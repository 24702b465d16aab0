import { Code, Group, Stack, Switch, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { type Answer, useRead } from "../../api/index.ts";
import {
  DataTable,
  durationText,
  EmptyState,
  ErrorState,
  LoadingState,
  PageHeader,
  Panel,
  StateBadge,
} from "../../parts/index.ts";

type Setting = Answer<"get", "/api/1/admin/settings">["items"][number];

const SOURCES: Readonly<Record<Setting["source"], { readonly label: string; readonly tone: "neutral" | "info" }>> = {
  default: { label: "default", tone: "neutral" },
  environment: { label: "environment", tone: "info" },
  ".env": { label: ".env file", tone: "info" },
  override: { label: "set at the start", tone: "info" },
};

export function Page() {
  const read = useRead("/api/1/admin/settings");
  const [sought, setSought] = useState("");
  const [isOwnOnly, setOwnOnly] = useState(false);
  const words = sought.trim().toLowerCase();
  const shown = read.data?.items.filter(
    ({ name, env, doc, source }) =>
      `${name} ${env} ${doc}`.toLowerCase().includes(words) && (!isOwnOnly || source !== "default"),
  );
  const groups = new Map<string, Setting[]>();
  for (const setting of shown ?? []) {
    const group = setting.name.split(".")[0]!;
    groups.set(group, [...(groups.get(group) ?? []), setting]);
  }
  return (
    <>
      <PageHeader title="Settings">
        What this server runs with, and where each value comes from. Secrets are masked. A change needs a restart.
      </PageHeader>
      <Stack gap="md">
        <Group gap="md">
          <TextInput
            flex="1 1 16rem"
            aria-label="Find a setting"
            placeholder="Find a setting, a variable or a meaning"
            leftSection={<IconSearch size={16} aria-hidden />}
            value={sought}
            onChange={({ currentTarget }) => setSought(currentTarget.value)}
            type="search"
          />
          <Switch
            label="Only what differs from its default"
            checked={isOwnOnly}
            onChange={({ currentTarget }) => setOwnOnly(currentTarget.checked)}
          />
        </Group>
        {read.error && !read.data && <ErrorState error={read.error} retry={() => void read.refetch()} />}
        {!read.data && !read.error && (
          <Panel>
            <LoadingState lines={12} height={26} />
          </Panel>
        )}
        {shown?.length === 0 && (
          <Panel>
            <EmptyState title="No setting fits">
              {isOwnOnly ? "Everything is as it comes." : "Look for a part of its name, or a word of its meaning."}
            </EmptyState>
          </Panel>
        )}
        {[...groups].map(([group, settings]) => (
          <Panel key={group} title={group}>
            <DataTable
              caption={`Settings of ${group}`}
              rows={settings}
              keyOf={({ name }) => name}
              empty={null}
              columns={[
                {
                  title: "Setting",
                  cell: ({ env, doc }) => (
                    <>
                      <Code fz="sm">{env}</Code>
                      <Text size="xs" c="dimmed" component="span" display="block" mt={3}>
                        {doc}
                      </Text>
                    </>
                  ),
                },
                { title: "Value", cell: (setting) => <Value value={setting.value} setting={setting} /> },
                {
                  title: "From",
                  align: "right",
                  cell: ({ source }) => <StateBadge state={source} {...SOURCES[source]} />,
                },
              ]}
            />
          </Panel>
        ))}
      </Stack>
    </>
  );
}

function Value({ value, setting }: { readonly value: unknown; readonly setting: Setting }) {
  const isDefault = setting.source === "default";
  const usual = textOf(setting.default, setting.unit);
  return (
    <>
      <Text size="sm" fw={isDefault ? 400 : 600} component="span">
        {textOf(value, setting.unit)}
      </Text>
      {!isDefault && !setting.secret && usual !== textOf(value, setting.unit) && (
        <Text size="xs" c="dimmed" component="span" display="block">
          instead of {usual}
        </Text>
      )}
    </>
  );
}

function textOf(value: unknown, unit: string | undefined): string {
  if (value === null || value === undefined || value === "") return "not set";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "object") return JSON.stringify(value);
  if (unit === "s" && typeof value === "number" && value >= 60) return `${value} s (${durationText(value)})`;
  return unit === undefined ? String(value) : `${value} ${unit}`;
}
